"""A disk that takes no more: producers are told to try again, the broker lives, and goes on when there is room."""

import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.model.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.records import decode_batch, iterate_batches
from ottla.testing import RunningBroker, broker
from ottla.testing.load import quiet, read_log
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request, produce
from ottla.testing.wire import WireConnection

VALUE_BYTES = 20_000
DISK_BYTES = 4 << 20


def _fill(connection: WireConnection, topic: str, acknowledged: list[bytes]) -> int:
    """Produce until the broker refuses; the refusal."""
    for number in range(2 * DISK_BYTES // VALUE_BYTES):
        value = b"%08d" % number * (VALUE_BYTES // 8)
        code = produce(connection, topic, 0, [value]).error_code
        if code:
            return code
        acknowledged.append(value)
    raise AssertionError("the disk did not fill up")


def _read_all(connection: WireConnection, topic: str) -> list[bytes | None]:
    values: list[bytes | None] = []
    while True:
        answer = connection.call(fetch_request(topic, 0, len(values)), FETCH_VERSION, FetchResponse)
        records = answer.responses[0].partitions[0].records
        if not records:
            return values
        for position, header in iterate_batches(records):
            if position + header.size <= len(records):
                values += [record.value for record in decode_batch(bytes(records[position : position + header.size]))]


def _check(running: RunningBroker, make_room: Callable[[], None]) -> None:
    acknowledged: list[bytes] = []
    with WireConnection(running.host, running.port) as connection:
        assert create_topic(connection, "full") == ErrorCode.NONE
        assert create_topic(connection, "other") == ErrorCode.NONE
        assert _fill(connection, "full", acknowledged) == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(acknowledged) > 10
        assert produce(connection, "full", 0, [b"x" * VALUE_BYTES]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert _read_all(connection, "full") == acknowledged, "reading goes on while writing cannot"
        make_room()
        assert produce(connection, "full", 0, [b"after"]).error_code == ErrorCode.NONE
        assert produce(connection, "other", 0, [b"after"]).error_code == ErrorCode.NONE
        acknowledged.append(b"after")
        assert _read_all(connection, "full") == acknowledged
    running.kill()
    running.restart()
    assert [value for _, _, value in read_log(running.bootstrap, "full", 1)] == acknowledged
    producer = Producer({"bootstrap.servers": running.bootstrap}, logger=quiet)
    producer.produce("full", b"later")
    assert producer.flush(30) == 0


def test_files_that_may_not_grow(ottla_fresh_broker: RunningBroker) -> None:
    """The limit is set from outside on the running process, so this needs no privileges."""
    pid = ottla_fresh_broker.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (DISK_BYTES, hard))

    def make_room() -> None:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))

    _check(ottla_fresh_broker, make_room)


@contextmanager
def _small_disk(at: Path) -> Iterator[Path]:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(at)],
        capture_output=True,
        check=False,
        text=True,
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root; the test above covers the same with a limit")
def test_a_disk_that_is_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with _small_disk(disk):
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(DISK_BYTES // 4))
        with broker({"log.dirs": str(disk / "data")}, data_dir=tmp_path / "home") as running:
            _check(running, ballast.unlink)
