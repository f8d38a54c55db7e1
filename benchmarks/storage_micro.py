"""What the storage engine costs beyond the kernel: append and read against a bare loop of pwrite and pread.

Run: python benchmarks/storage_micro.py [--rounds N]
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable

from crc32c import crc32c

from ottla.broker.storage.log import Log
from ottla.broker.storage.manager import LogManager
from ottla.config.broker import BrokerSettings
from ottla.config.topic import TopicSettings
from ottla.model.names import TopicPartition
from ottla.protocol.records import CRC_START, NewRecord, encode_batch
from ottla.testing.clock import ManualClock

APPENDS = 5_000
NOW_MS = 1_700_000_000_000


def per_call_us(action: Callable[[int], object], calls: int, rounds: int) -> float:
    """Median over the rounds: the machine is shared."""
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        for number in range(calls):
            action(number)
        samples.append((time.perf_counter() - started) / calls * 1e6)
    return statistics.median(samples)


def report(name: str, ours: float, bare: float, bare_name: str) -> None:
    ratio, beyond = ours / bare, ours - bare
    print(f"{name:<48} {ours:7.2f} µs   {bare_name} {bare:6.2f} µs   ratio {ratio:5.2f}   beyond it {beyond:6.2f} µs")


def batches(value_bytes: int, producer_id: int, count: int) -> list[bytearray]:
    record = NewRecord(b"key", b"x" * value_bytes, NOW_MS)
    if producer_id < 0:
        return [encode_batch([record]) for _ in range(count)]  # the log numbers each in place, so none is sent twice
    return [
        encode_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=number)
        for number in range(count)
    ]


def measure_append(log: Log, scratch: int, value_bytes: int, rounds: int, producer_id: int) -> None:
    prepared = batches(value_bytes, producer_id, APPENDS * rounds)
    batch = prepared[0]
    taken = iter(prepared)
    position = 0

    def ours(_: int) -> None:
        log.append_as_leader(next(taken), 0, NOW_MS)

    def bare(_: int) -> None:
        nonlocal position
        crc32c(memoryview(batch)[CRC_START:])
        os.pwrite(scratch, batch, position)
        position += len(batch)

    kind = "idempotent " if producer_id >= 0 else ""
    name = f"append one {kind}batch of {len(batch)} bytes"
    cost = per_call_us(ours, APPENDS, rounds)
    report(name, cost, per_call_us(bare, APPENDS, rounds), "crc + pwrite")


def measure_reads(log: Log, rounds: int) -> None:
    fd = log.segments.active.file.fd
    end = log.end_offset

    def bare(_: int) -> None:
        os.pread(fd, 61, 0)

    bare_us = per_call_us(bare, APPENDS, rounds)
    first = log.segments.active.base_offset
    spread = end - first
    cases: list[tuple[str, Callable[[int], object]]] = [
        ("read at the end of the log (nothing new)", lambda _: log.read(end, 1 << 20, end, min_one_batch=True)),
        ("read where the last slice ended", lambda _: log.read(end - 1, 1 << 20, end, min_one_batch=True)),
        (
            "read in the midst of the active segment",
            lambda n: log.read(first + n * 7 % spread, 1 << 20, end, min_one_batch=True),
        ),
        ("read anywhere in the log", lambda n: log.read(n * 7 % end, 1 << 20, end, min_one_batch=True)),
    ]
    log.read(end - 1, 1 << 20, end, min_one_batch=True)
    log.segments.active.remember(end - 1, log.segments.active.find(end - 1) or 0)
    for name, action in cases:
        report(name, per_call_us(action, APPENDS, rounds), bare_us, "pread of a header")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    rounds = arguments.parse_args().rounds
    with tempfile.TemporaryDirectory() as directory:
        settings = TopicSettings(segment_bytes=64 * 1024 * 1024)
        manager = LogManager(BrokerSettings(log_dirs=(directory,)), lambda _: settings, ManualClock())
        manager.open()
        scratch = os.open(os.path.join(directory, "scratch"), os.O_RDWR | os.O_CREAT)
        for value_bytes in (100, 1_000, 16_000):
            log = manager.create(TopicPartition(f"plain-{value_bytes}", 0), uuid.uuid4())
            measure_append(log, scratch, value_bytes, rounds, -1)
        log = manager.create(TopicPartition("idempotent", 0), uuid.uuid4())
        measure_append(log, scratch, 1_000, rounds, 7)
        big = manager.get(TopicPartition("plain-16000", 0))
        assert big is not None
        print(f"reading from a log of {len(big.segments)} segments, {big.size_bytes >> 20} MiB")
        measure_reads(big, rounds)
        small = manager.get(TopicPartition("plain-100", 0))
        assert small is not None
        print(f"reading from a log of small batches, {small.size_bytes >> 20} MiB")
        measure_reads(small, rounds)
        os.close(scratch)
        manager.close()


if __name__ == "__main__":
    main()
