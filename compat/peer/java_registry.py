"""Confluent's Java registry client and Flink's serializers, fetched from a Maven repository into .peer/."""

import subprocess
from pathlib import Path

from compat.peer.kafka import PEER, ROOT, fetch_jars, java_command, require
from compat.peer.program import SMALL

POM = Path(__file__).with_name("registry_pom.xml")
JARS = PEER / "registry"
CLASSES = PEER / "registry-classes"
SOURCES = ROOT / "compat" / "java" / "registry"


def fetch_registry_client() -> Path:
    """The folder with our program, compiled against the jars, which are fetched when missing."""
    fetch_jars(POM, JARS, "Confluent's registry client")
    compiler = require("javac", why="to compile programs of tests (Debian: apt install openjdk-17-jdk-headless)")
    # The jar's classes name annotations that are not in it: not ours to mend, so only our own sources are looked at.
    command = [compiler, "-Xlint:all,-classfile", "-proc:none", "-cp", f"{JARS}/*", "-d", str(CLASSES)]
    done = subprocess.run(
        [*command, *sorted(map(str, SOURCES.glob("*.java")))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return CLASSES


def registry_check(url: str, scenario: str, subject: str, *arguments: str) -> list[str]:
    """The command line of one scenario."""
    given = (url, scenario, subject, *arguments)
    return java_command("RegistryCheck", *given, flags=SMALL, classpath=f"{CLASSES}:{JARS}/*")
