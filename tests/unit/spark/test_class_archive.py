"""The archive of Spark's classes: written by the first session, used by those after it, and never in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.config.java import Candidate
from ottla.spark.class_archive import SWITCH, archive_options


@pytest.fixture
def java(tmp_path: Path) -> Candidate:
    executable = tmp_path / "jdk" / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.touch()
    server = tmp_path / "jdk" / "lib" / "server"
    server.mkdir(parents=True)
    (server / "classes.jsa").touch()
    return Candidate(origin="PATH", executable=executable, version=17)


def written_to(options: str) -> Path:
    return Path(options.partition('-XX:ArchiveClassesAtExit="')[2].partition('"')[0])


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_session_leaves_an_archive_for_the_next(java: Candidate, tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    mine = written_to(archive_options(java, environment))
    assert mine.parent == tmp_path / "cache" / "ottla"
    assert mine.name.endswith(f".from-{os.getpid()}")
    mine.write_text("half of it")
    assert "ArchiveClassesAtExit" in archive_options(java, environment)  # who writes it is still there
    finished = mine.with_name(f"{mine.name.rpartition('-')[0]}-{ended_process()}")
    finished.write_text("all of it")
    options = archive_options(java, environment)
    archive = mine.with_name(mine.name.partition(".from-")[0])
    assert f'-XX:SharedArchiveFile="{archive}"' in options
    assert archive.read_text() == "all of it"
    finished.write_text("another one")
    assert archive_options(java, environment) == options
    assert not finished.exists()


def test_another_java_has_another_archive(java: Candidate, tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    before = written_to(archive_options(java, environment))
    assert java.executable is not None
    os.utime(java.executable, (1, 1))  # as an update would
    assert written_to(archive_options(java, environment)) != before


def test_there_may_be_none(java: Candidate, tmp_path: Path) -> None:
    assert archive_options(java, {SWITCH: "off"}) == ""
    (tmp_path / "jdk" / "lib" / "server" / "classes.jsa").unlink()
    assert archive_options(java, {"XDG_CACHE_HOME": str(tmp_path / "cache")}) == ""


def test_a_cache_that_cannot_be_written_to_is_passed_over(java: Candidate, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = written_to(archive_options(java, {"XDG_CACHE_HOME": str(tmp_path / "file")}))
    assert tmp_path not in place.parents
