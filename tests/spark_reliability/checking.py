"""Whether what came out is what had to come out: none lost, none twice, state and tables as they were."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pyarrow.dataset
from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.spark_reliability import world

EXAMPLES = 3


class Payment(NamedTuple):
    """A row of the first query's sinks."""

    id: int
    amount: int
    doubled: int
    version: int | None


class Counted(NamedTuple):
    """A row of the second query's."""

    id: int
    account: str
    amount: int
    place: int
    total: int


@dataclass
class Verdict:
    """Counts of what is wrong, by place; empty when all is well."""

    wrong: dict[str, str] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def judge(self, place: str, expected: set[int], found: Iterable[int]) -> None:
        counts = Counter(found)
        self.seen[place] = counts.total()
        doubled = {number for number, count in counts.items() if count > 1}
        lost, strange = expected - counts.keys(), counts.keys() - expected
        self.blame(place, {"lost": lost, "doubled": doubled, "that should not be there": strange})

    def blame(self, place: str, numbers: dict[str, set[int]]) -> None:
        told = [f"{len(some)} {what} (such as {sorted(some)[:EXAMPLES]})" for what, some in numbers.items() if some]
        if told:
            self.wrong[place] = ", ".join([*([self.wrong[place]] if place in self.wrong else []), *told])


def check(bootstrap: str, postgres: str, folder: Path, payments: world.Payments) -> Verdict:
    good, bad = payments.good, payments.bad
    verdict = Verdict()
    topic = [_payment(json.loads(value)) for value in committed_values(bootstrap, world.OUTPUT)]
    files = [_payment(row) for row in _parquet_rows(folder / "lake")]
    check_payments(verdict, "topic", topic, good, payments)
    check_payments(verdict, "parquet", files, good, payments)
    verdict.judge("dead letters", bad, (_number(value) for value in committed_values(bootstrap, world.DEAD)))
    check_counted(verdict, "postgres", _postgres_rows(postgres), good)
    counted = (Counted(**json.loads(value)) for value in committed_values(bootstrap, world.COUNTED))
    check_counted(verdict, "counted topic", list(counted), good)
    met = {row.id: row.version for row in files}
    verdict.seen["met another account in the topic than in the files"] = sum(
        row.version != met.get(row.id) for row in topic
    )
    verdict.seen["versions of the accounts"] = payments.slices
    return verdict


def check_payments(verdict: Verdict, place: str, rows: list[Payment], good: set[int], payments: world.Payments) -> None:
    """Each good payment once, with the right columns and an account as it was at that time."""
    verdict.judge(place, good, (row.id for row in rows))
    amounts = {row.id for row in rows if (row.amount, row.doubled) != _amounts(row.id)}
    versions = {row.id for row in rows if row.version not in payments.versions_met(row.id)}
    verdict.blame(place, {"with other amounts": amounts, "met an account as it was not then": versions})


def check_counted(verdict: Verdict, place: str, rows: list[Counted], good: set[int]) -> None:
    """Each good payment once, and for each account places without a gap, whose sums go on from one to the next."""
    verdict.judge(place, good, (row.id for row in rows))
    others = {
        row.id for row in rows if row.amount != world.amount_of(row.id) or row.account != world.account_of(row.id)
    }
    broken: set[int] = set()
    by_account: dict[str, list[Counted]] = {}
    for row in rows:
        by_account.setdefault(row.account, []).append(row)
    for some in by_account.values():
        total = 0
        for expected, row in enumerate(sorted(some, key=lambda row: row.place), 1):
            total += row.amount
            if (row.place, row.total) != (expected, total):
                broken.add(row.id)
    verdict.blame(place, {"with another amount or account": others, "with a state that is not theirs": broken})


def _amounts(number: int) -> tuple[int, int]:
    amount = world.amount_of(number)
    return amount, amount * 2


def _payment(row: dict[str, Any]) -> Payment:
    return Payment(int(row["id"]), row["amount"], row["doubled"], row.get("version"))


def _number(value: bytes) -> int:
    return int(value.split(b'"id": ')[1].split(b",")[0])


def committed_values(bootstrap: str, topic: str) -> Iterator[bytes]:
    """Every value of a topic that a reader of committed records gets, to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        ended: set[int] = set()
        while len(ended) < len(partitions):
            for message in consumer.consume(5_000, 0.5):
                error = message.error()
                if error is None:
                    yield message.value()
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise AssertionError(str(error))
    finally:
        consumer.close()


def _parquet_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.dataset.dataset(str(folder), format="parquet").to_table().to_pylist()
    return rows


def _postgres_rows(postgres: str) -> list[Counted]:
    with psycopg.connect(postgres) as connection:
        found = connection.execute(f"SELECT {', '.join(Counted._fields)} FROM {world.TABLE}")
        return [Counted(*row) for row in found]
