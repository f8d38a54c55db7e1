"""The home that Spark starts Java from."""

import os
import subprocess
from pathlib import Path

import pytest

from ottla.config.java import find_java
from ottla.spark.java import home_for_spark


def fake_java(folder: Path, answer: str) -> Path:
    """A `bin/java` that says `answer` on standard error, as the real one does, and its arguments on standard output."""
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho '{answer}' >&2\necho \"$@\"\n")
    executable.chmod(0o755)
    return executable


def test_the_home_for_spark_leaves_out_one_flag_and_nothing_else(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "it's real", 'openjdk version "21.0.1"')
    java = find_java({"JAVA_HOME": str(tmp_path / "it's real")}, wanted_by="Spark")
    home = home_for_spark(java, {"HOME": str(tmp_path)})
    assert home.parent == tmp_path / ".cache" / "ottla"
    assert home_for_spark(java, {"HOME": str(tmp_path)}) == home

    arguments = ["-cp", "a b:*", "--add-modules=jdk.incubator.vector", "", "-Dx=--add-modules=jdk.incubator.vector"]
    ran = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    expected = subprocess.run([real, *arguments[:2], *arguments[3:]], capture_output=True, text=True, check=True)
    assert ran.stdout == expected.stdout


def test_a_cache_that_cannot_be_made_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("")
    fake_java(tmp_path / "java", 'openjdk version "21.0.1"')
    java = find_java({"JAVA_HOME": str(tmp_path / "java")}, wanted_by="Spark")
    home = home_for_spark(java, {"XDG_CACHE_HOME": str(tmp_path / "file")})
    assert home.parent == tmp_path / f"ottla-{os.getuid()}"
