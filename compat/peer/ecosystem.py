"""Kafka Streams, Connect and MirrorMaker 2, fetched from a Maven repository into .peer/, and what their tests share."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from compat.peer.kafka import PEER, ROOT, fetch_jars, java_command, require
from compat.peer.program import SMALL

POM = Path(__file__).with_name("ecosystem_pom.xml")
JARS = PEER / "ecosystem"
CLASSES = PEER / "ecosystem-classes"
SOURCES = ROOT / "compat" / "java" / "ecosystem"


def fetch_ecosystem() -> Path:
    """The folder with our programs, compiled against the jars, which are fetched when missing."""
    fetch_jars(POM, JARS, "Kafka Streams, Connect and MirrorMaker")
    compiler = require("javac", why="to compile programs of tests (Debian: apt install openjdk-17-jdk-headless)")
    # The jars' own processors of annotations are not meant for us.
    command = [compiler, "-Xlint:all", "-proc:none", "-cp", f"{JARS}/*", "-d", str(CLASSES)]
    done = subprocess.run(
        [*command, *sorted(map(str, SOURCES.glob("*.java")))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return CLASSES


def ecosystem_command(main_class: str, *arguments: str, level: str = "WARN", flags: Sequence[str] = SMALL) -> list[str]:
    """The command line of one of our programs, or of one in the jars."""
    return java_command(main_class, *arguments, flags=flags, classpath=f"{CLASSES}:{JARS}/*", level=level)


def write_properties(path: Path, properties: Mapping[str, str | int]) -> Path:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return path
