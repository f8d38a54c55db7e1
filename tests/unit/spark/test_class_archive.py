"""The archive of Spark's classes: where it is, who makes it and when, and that it is never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.config.java import Candidate
from ottla.spark import archive_making, class_archive
from ottla.spark.class_archive import SWITCH, archive_options, archive_place, make_when_this_ends


@pytest.fixture
def java(tmp_path: Path) -> Candidate:
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    server = tmp_path / "jdk" / "lib" / "server"
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    return Candidate(origin="PATH", executable=executable, version=17)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


def place_of(java: Candidate, environment: dict[str, str], home: Path | None = None) -> Path:
    place = archive_place(java, environment, home)
    assert place is not None
    return place


def test_it_is_used_if_it_is_there_and_no_session_ever_writes_it(
    java: Candidate, environment: dict[str, str], tmp_path: Path
) -> None:
    place = place_of(java, environment)
    assert place.parent == tmp_path / "cache" / "ottla"
    assert archive_options(place) == ""
    place.touch()
    assert f'-XX:SharedArchiveFile="{place}"' in archive_options(place)
    assert "ArchiveClassesAtExit" not in archive_options(place)


def test_another_java_or_another_home_has_another_archive(java: Candidate, environment: dict[str, str]) -> None:
    before = place_of(java, environment)
    assert place_of(java, environment, Path("/another/home")) != before
    assert java.executable is not None
    os.utime(java.executable, (1, 1))  # as an update would
    assert place_of(java, environment) != before


def test_a_pyspark_that_was_installed_again_has_another_archive(
    java: Candidate, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java would not use the old one, and say nothing."""
    jar = tmp_path / "pyspark" / "jars" / "spark-core.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"classes")
    monkeypatch.setattr("pyspark.__file__", str(jar.parent.parent / "__init__.py"))
    before = place_of(java, environment)
    assert place_of(java, environment) == before
    os.utime(jar, (1, 1))
    assert place_of(java, environment) != before


def test_there_may_be_none(java: Candidate, environment: dict[str, str], tmp_path: Path) -> None:
    assert archive_place(java, {**environment, SWITCH: "off"}) is None
    (tmp_path / "jdk" / "lib" / "server" / "classes.jsa").unlink()
    assert archive_place(java, environment) is None
    assert archive_options(None) == ""


def test_a_cache_that_cannot_be_written_to_is_passed_over(java: Candidate, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert tmp_path not in place_of(java, {"XDG_CACHE_HOME": str(tmp_path / "file")}).parents


def test_it_is_made_when_the_process_that_missed_it_has_ended(
    java: Candidate, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[object] = []
    monkeypatch.setattr("atexit.register", later.append)
    place = place_of(java, environment)
    make_when_this_ends(None)
    assert later == []
    make_when_this_ends(place)
    assert later == [class_archive.start_maker]
    place.touch()
    make_when_this_ends(place)
    assert later == [class_archive.start_maker]


def test_one_process_makes_it_and_the_others_leave_it_alone(
    java: Candidate, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of(java, environment)
    made: list[Path] = []
    priorities: list[int] = []
    monkeypatch.setattr(archive_making, "find_java", lambda environment, wanted_by: java)
    monkeypatch.setattr(archive_making, "home_without_zip", lambda *given: None)
    monkeypatch.setattr(archive_making, "make", made.append)
    monkeypatch.setattr("os.nice", priorities.append)
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    monkeypatch.delenv(SWITCH, raising=False)
    hold = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    holding = [sys.executable, "-c", hold, str(place.with_suffix(".lock"))]
    with subprocess.Popen(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert archive_making.main() == 0
        assert made == []
        other.communicate(b"\n")
    assert archive_making.main() == 0
    assert made == [place]
    place.touch()
    assert archive_making.main() == 0
    assert made == [place]
    assert set(priorities) == {archive_making.LOWEST_PRIORITY}
