"""Searches over a real broker: planted records of every odd kind, bounds, orders, limits, transactions, tails."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.client.admin import create_topic
from ottla.client.cluster import Cluster
from ottla.console.search.batches import Found
from ottla.console.search.query import parse_query
from ottla.console.search.scanning import End, Scan
from ottla.console.search.tailing import Look, Tail
from ottla.model.errors import ApiError
from ottla.testing import RunningBroker, broker

RECORDS = 3_000
FIRST_MS = 1_700_000_000_000
_LARGE = {"message.max.bytes": 2_000_000, "batch.num.messages": 100}


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    with broker({"message.max.bytes": 4_000_000}) as one:
        yield one


@pytest.fixture(scope="module")
def filled(running: RunningBroker) -> str:
    """Three partitions, times that rise by a second, and planted oddities."""
    asyncio.run(_create(running.bootstrap, "filled", 3))
    producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5, "compression.type": "lz4", **_LARGE})
    for number in range(RECORDS):
        value = json.dumps({"n": number, "user": {"name": f"user{number % 100}"}, "amount": number / 2})
        producer.produce("filled", value, f"k{number}", partition=number % 3, timestamp=FIRST_MS + number * 1000)
    at = FIRST_MS + RECORDS * 1000
    odd: list[tuple[Any, Any, Any]] = [
        (b"tomb", None, None),
        (None, b"no key", None),
        (b"with headers", b"x", [("trace", b"abc-1"), ("empty", None), ("naïve", b"\x00\xff")]),
        (b"binary", bytes(range(256)), None),
        (b"large", b"x" * 1_000_000 + b"needle-in-1MB", None),
        (b"script", b"<script>alert(1)</script>", None),
        (b"deep", b"[" * 100_000 + b"]" * 100_000, None),
        (b"escaped", b'{"name":"\\u0061dam"}', None),
    ]
    for number, (key, value, headers) in enumerate(odd):
        producer.produce("filled", value, key, partition=number % 3, timestamp=at + number, headers=headers)
    assert producer.flush(60) == 0
    return "filled"


async def _create(bootstrap: str, topic: str, partitions: int) -> None:
    async with Cluster(bootstrap) as cluster:
        await create_topic(cluster, topic, partitions=partitions, replication_factor=1)


def found_by(running: RunningBroker, topic: str, line: str, **options: Any) -> tuple[list[Found], Scan]:
    async def go() -> tuple[list[Found], Scan]:
        async with Cluster(running.bootstrap) as cluster:
            scan = Scan(cluster, topic, parse_query(line), **options)
            return [found async for found in scan], scan

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("value:null", [b"tomb"]),
        ("key:null", [None]),
        ("header.trace:abc", [b"with headers"]),
        ("header.trace=abc", []),
        ("header.empty:null", [b"with headers"]),
        ('header:"naïve"', [b"with headers"]),
        ("needle-in-1MB", [b"large"]),
        ("<script>", [b"script"]),
        ('$.name="adam"', [b"escaped"]),
        ("$.n=42", [b"k42"]),
        ("$.n>=2998", [b"k2999", b"k2998"]),
        ('$.user.name="user7" $.amount<60', [b"k107", b"k7"]),
        ("key=k17", [b"k17"]),
        ("key:k299 -key:k299", []),
        ("key=deep $[0]", []),
        ("$.n=42 partition:1", []),
        ("$.n=42 partition:0", [b"k42"]),
    ],
)
def test_planted_records_are_found(running: RunningBroker, filled: str, line: str, keys: list[bytes | None]) -> None:
    found, scan = found_by(running, filled, line)
    assert [each.key for each in found] == keys
    assert scan.end is End.COMPLETE
    assert scan.matched == len(keys)
    if "partition" not in line:
        assert scan.scanned == RECORDS + 8


def test_a_large_value_comes_whole(running: RunningBroker, filled: str) -> None:
    found, scan = found_by(running, filled, "key=large")
    assert found[0].value == b"x" * 1_000_000 + b"needle-in-1MB"
    assert scan.bytes_read > 1_000


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_all_partitions_come_in_the_order_of_time(running: RunningBroker, filled: str, order: str) -> None:
    found, scan = found_by(running, filled, f"key:k order:{order}")
    times = [each.timestamp_ms for each in found]
    assert times == sorted(times, reverse=order == "newest")
    assert len(found) >= RECORDS
    assert scan.covered == scan.total == RECORDS + 8


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_a_limit_gives_the_first_ones_of_all_partitions(running: RunningBroker, filled: str, order: str) -> None:
    found, scan = found_by(running, filled, f"key:k limit:5 order:{order} -key:tomb $.n", limit=50)
    wanted = range(5) if order == "oldest" else range(RECORDS - 1, RECORDS - 6, -1)
    assert [each.key for each in found] == [b"k%d" % number for number in wanted]
    assert scan.end is End.LIMIT
    assert scan.given == 5


def test_bounds_of_offsets_and_times(running: RunningBroker, filled: str) -> None:
    found, _ = found_by(running, filled, "partition:0 offset>=10 offset<13 order:oldest")
    assert [each.offset for each in found] == [10, 11, 12]
    found, scan = found_by(running, filled, f"from:{FIRST_MS + 100_000} to:{FIRST_MS + 110_000} order:oldest")
    assert [each.key for each in found] == [b"k%d" % number for number in range(100, 110)]
    assert scan.scanned == 10, "the brokers know where the times are"


def test_nothing_and_nowhere(running: RunningBroker, filled: str) -> None:
    found, scan = found_by(running, filled, f"from:{FIRST_MS * 2}")
    assert (found, scan.end, scan.total) == ([], End.COMPLETE, 0)
    with pytest.raises(ApiError, match="has partitions 0 to 2, not 7"):
        found_by(running, filled, "partition:7")
    with pytest.raises(ApiError, match="UNKNOWN_TOPIC"):
        found_by(running, "no-such-topic", "x")


def test_stop_ends_it_at_once(running: RunningBroker, filled: str) -> None:
    async def go() -> Scan:
        async with Cluster(running.bootstrap) as cluster:
            scan = Scan(cluster, filled, parse_query("nothing has this"))
            async for _ in scan.steps():
                scan.stop()
            return scan

    scan = asyncio.run(go())
    assert scan.end is End.STOPPED
    assert scan.scanned < RECORDS


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_aborted_records_are_not_found(running: RunningBroker, unique: Callable[[str], str], order: str) -> None:
    topic = unique("transactions")
    asyncio.run(_create(running.bootstrap, topic, 1))
    producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for number in range(40):
        producer.begin_transaction()
        for part in range(30):
            producer.produce(topic, f"{'kept' if number % 2 else 'aborted'} {number} {part}")
        producer.flush(60)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(60)
    found, _ = found_by(running, topic, f"order:{order}")
    assert len(found) == 600
    assert all(each.value is not None and each.value.startswith(b"kept") for each in found)
    everything, _ = found_by(running, topic, f"order:{order}", committed=False)
    assert len(everything) == 1200


def test_compacted_gaps(running: RunningBroker, unique: Callable[[str], str]) -> None:
    """Offsets without records: for a reader of committed ones aborted ones are holes as compaction leaves them."""
    topic = unique("gaps")
    asyncio.run(_create(running.bootstrap, topic, 1))
    producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, "first")
    producer.commit_transaction(60)
    producer.begin_transaction()
    for _ in range(5_000):
        producer.produce(topic, "gone")
    producer.flush(60)
    producer.abort_transaction(60)
    assert [each.value for each in found_by(running, topic, "")[0]] == [b"first"]


def test_a_tail_gives_what_comes_and_tells_what_it_passed_over(
    running: RunningBroker, unique: Callable[[str], str]
) -> None:
    topic = unique("tail")
    asyncio.run(_create(running.bootstrap, topic, 2))
    producer = Producer({"bootstrap.servers": running.bootstrap})
    producer.produce(topic, "before", partition=0)
    producer.flush(60)

    async def go() -> tuple[list[Look], Tail]:
        async with Cluster(running.bootstrap) as cluster:
            tail = Tail(cluster, topic, parse_query("wanted"), records_a_second=100, look_seconds=0.05)
            looks = []
            async for look in tail.looks():
                looks.append(look)
                if len(looks) == 1:
                    for number in range(100):
                        producer.produce(topic, f"{'wanted' if number % 2 else 'other'} {number}", partition=number % 2)
                    await asyncio.to_thread(producer.flush, 60)
                if tail.seen >= 100:
                    tail.stop()
            return looks, tail

    looks, tail = asyncio.run(go())
    assert (looks[0].seen, looks[0].found) == (0, [])
    assert (tail.seen, tail.matched) == (100, 50)
    assert tail.skipped == 0
    assert 0 < tail.given <= 50
    assert all(len(look.found) <= 5 for look in looks), "100 a second, 20 looks a second"
    assert all(found.value is not None and found.value.startswith(b"wanted") for look in looks for found in look.found)
