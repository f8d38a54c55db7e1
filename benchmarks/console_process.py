"""A console in a process of its own, what that costs, and batches of records for the benchmarks of it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ottla.protocol.compression import Codec
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, encode_batch

PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class Batch(NamedTuple):
    """As the producer wants it."""

    topic: str
    partition: int
    record_count: int
    base_timestamp: int
    max_timestamp: int
    payload: bytes
    codec: Codec


def batch(topic: str, partition: int, records: Sequence[NewRecord], codec: Codec = Codec.NONE) -> Batch:
    payload = bytes(encode_batch(records, codec=codec))[BATCH_OVERHEAD:]
    return Batch(topic, partition, len(records), records[0].timestamp, records[-1].timestamp, payload, codec)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS


def memory_mb(pid: int, kind: str = "VmRSS") -> float:
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


@contextmanager
def console(bootstrap: str) -> Iterator[tuple[str, int]]:
    """Its address and its process, as soon as it answers."""
    arguments = ["console", "--bootstrap-server", bootstrap, "--listen", "127.0.0.1:0"]
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        print(f"the console answers after {time.perf_counter() - started:.2f} s, with {memory_mb(process.pid):.0f} MB")
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)
