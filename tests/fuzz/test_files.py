"""Mutated segment, index and checkpoint files: the broker starts, serves what is intact, and touches nothing else.

A failure names its seed; OTTLA_SEED repeats it.
"""

import random
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.chance import SEED, SOAK

from ottla.model.errors import ErrorCode
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.records import check_crc, iterate_batches, read_header
from ottla.testing import RunningBroker, broker
from ottla.testing.requests import FETCH_VERSION, create_topic, fetch_request, produce
from ottla.testing.wire import WireConnection

ROUNDS = 60 if SOAK else 8
VICTIMS = [f"victim-{number}" for number in range(8)]
WITNESS = "witness"
BATCHES = 60
RECORDS_PER_BATCH = 5
VALUE_BYTES = 5_000
SETTINGS = {"log.segment.bytes": 1 << 20, "log.segment.delete.delay.ms": 0}
CLEAN_MARKER = ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"


class Batch(NamedTuple):
    base_offset: int
    data: bytes
    segment: str
    end_position: int


def _value(topic: str, number: int) -> bytes:
    return f"{topic} {number:06d} ".encode().ljust(VALUE_BYTES, b"=")


@contextmanager
def _prepared(home: Path) -> Iterator[tuple[RunningBroker, Path]]:
    """A stopped broker with topics of two segments each, and a copy of its directory."""
    with broker(SETTINGS, data_dir=home) as running:
        with WireConnection(running.host, running.port) as connection:
            for topic in (*VICTIMS, WITNESS):
                assert create_topic(connection, topic) == ErrorCode.NONE
                for batch in range(BATCHES):
                    first = batch * RECORDS_PER_BATCH
                    values = [_value(topic, number) for number in range(first, first + RECORDS_PER_BATCH)]
                    assert produce(connection, topic, 0, values).error_code == ErrorCode.NONE
        running.stop()
        copy = home / "copy"
        shutil.copytree(running.log_dirs[0], copy)
        yield running, copy


def _batches(partition: Path) -> list[Batch]:
    found: list[Batch] = []
    for segment in sorted(partition.glob("*.log")):
        data = segment.read_bytes()
        for position, header in iterate_batches(data):
            end = position + header.size
            found.append(Batch(header.base_offset, data[position:end], segment.name, end))
    return found


def _mutate(path: Path, chance: random.Random) -> int:
    """Change a file and return the position of the first byte that differs."""
    data = bytearray(path.read_bytes())
    size = len(data)
    match chance.choice(("flip", "cut", "extend", "zeros", "garbage", "empty", "swap")):
        case "flip" if data:
            first = chance.randrange(size)
            data[first] ^= 1 << chance.randrange(8)
        case "cut" if data:
            first = chance.randrange(size)
            del data[first:]
        case "zeros" if data:
            first = chance.randrange(size)
            data[first : first + 100] = bytes(min(100, size - first))
        case "garbage" if data:
            first = chance.randrange(size)
            data[first : first + 30] = chance.randbytes(min(30, size - first))
        case "empty":
            first = 0
            data.clear()
        case "swap" if size > 200:
            first = chance.randrange(size - 200)
            data[first : first + 100], data[first + 100 : first + 200] = (
                data[first + 100 : first + 200],
                data[first : first + 100],
            )
        case _:
            first = size
            data += chance.randbytes(chance.randrange(1, 200))
    path.write_bytes(bytes(data))
    return first


def _damage(partition: Path, chance: random.Random) -> dict[str, int]:
    """Mutate one to three files; the first damaged position of each."""
    # Not partition.metadata: a directory that says it belongs to another topic is set aside whole, as it should be.
    files = sorted(path for path in partition.iterdir() if path.is_file() and path.name != "partition.metadata")
    damaged: dict[str, int] = {}
    for path in chance.sample(files, min(len(files), chance.choice((1, 1, 2, 3)))):
        if chance.random() < 0.1:
            path.unlink()
            damaged[path.name] = 0
        else:
            damaged[path.name] = _mutate(path, chance)
    return damaged


def _intact(batches: list[Batch], damaged: dict[str, int]) -> list[Batch]:
    """The batches before the first damage to the log itself. Damage to anything else must not cost a record."""
    intact: list[Batch] = []
    for batch in batches:
        if batch.end_position > damaged.get(batch.segment, 1 << 62):
            break
        intact.append(batch)
    return intact


def _fetch(connection: WireConnection, topic: str, offset: int) -> tuple[int, bytes]:
    answer = connection.call(fetch_request(topic, 0, offset, max_bytes=200_000), FETCH_VERSION, FetchResponse)
    partition = answer.responses[0].partitions[0]
    return partition.error_code, bytes(partition.records or b"")


def _first_batch(records: bytes) -> tuple[int, bytes] | None:
    """(base offset, bytes) of the first batch, if it is whole and right."""
    try:
        header = read_header(records, 0)
        check_crc(records, 0, header)
    except (CorruptBatch, struct.error, IndexError):
        return None
    return header.base_offset, records[: header.size]


def _check(connection: WireConnection, topic: str, intact: list[Batch], chance: random.Random, words: str) -> None:
    offsets = [batch.base_offset for batch in intact]
    for batch in chance.sample(intact, min(10, len(intact))):
        wanted = batch.base_offset + chance.randrange(RECORDS_PER_BATCH)
        error, records = _fetch(connection, topic, wanted)
        assert error == ErrorCode.NONE, f"{words}: offset {wanted} of {len(offsets)} intact batches gives error {error}"
        found = _first_batch(records)
        assert found is not None, f"{words}: offset {wanted} gives bytes that are no batch"
        # The leader epoch in the batch is the same, so the bytes must be, too.
        assert found == (batch.base_offset, batch.data), f"{words}: offset {wanted} gives offset {found[0]}"


def _ask_around(connection: WireConnection, topic: str) -> None:
    """Requests that search the files in other ways. Any answer will do; none is not one."""
    for timestamp in (-1, -2, -3, 1_700_000_000_000, 5, 2**62):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
        connection.call(request, 7, ListOffsetsResponse)
    for offset in range(0, BATCHES * RECORDS_PER_BATCH + 10, 7):
        _fetch(connection, topic, offset)


@pytest.mark.timeout(1800 if SOAK else 240)
def test_mutated_files(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with _prepared(tmp_path) as (running, copy):
        original = {topic: _batches(copy / f"{topic}-0") for topic in (*VICTIMS, WITNESS)}
        assert all(len({batch.segment for batch in batches}) == 2 for batches in original.values())
        for number in range(ROUNDS):
            directory = running.log_dirs[0]
            shutil.rmtree(directory)
            shutil.copytree(copy, directory)
            damage = {topic: _damage(directory / f"{topic}-0", chance) for topic in VICTIMS}
            how = chance.choice(("after a clean stop", "after a crash", "after a crash, nothing known to be on disk"))
            if how != "after a clean stop":
                (directory / CLEAN_MARKER).unlink()
            if "nothing known" in how:
                (directory / RECOVERY_POINTS).unlink()
            logged = len(running.log_text())
            running.start()
            with WireConnection(running.host, running.port) as connection:
                for topic in VICTIMS:
                    words = f"seed {SEED}, round {number}, {how}, {topic} with damage at {damage[topic]}"
                    _check(connection, topic, _intact(original[topic], damage[topic]), chance, words)
                    _ask_around(connection, topic)
                    code = produce(connection, topic, 0, [b"new"]).error_code
                    assert code in {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}, words
                _check(connection, WITNESS, original[WITNESS], chance, f"seed {SEED}, round {number}, the witness")
            log = running.log_text()[logged:]
            assert "Traceback" not in log, f"seed {SEED}, round {number}, {how}, {damage}\n{log[-5000:]}"
            if chance.random() < 0.5:
                assert running.stop() == 0, f"seed {SEED}, round {number}"
            else:
                running.kill()
    print(f"\n{ROUNDS} starts with {ROUNDS * len(VICTIMS)} damaged logs, seed {SEED}")
