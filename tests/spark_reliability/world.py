"""What goes into the pipeline under test, what must come out, and the check that it did: none lost, none twice."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset
from confluent_kafka import Producer
from tests.committed import committed

INPUT = "payments"
OUTPUT = "payments.checked"
DEAD = "payments.dead"
TABLE = "payments"
GROUP = "ottla.payments-checked.payments"
PARTITIONS = 4
BROKEN_EVERY = 1_000
REFUSED_EVERY = 777


def record(number: int) -> bytes:
    """Record `number` of the input: mostly good, some that no parser reads, some that break the rule."""
    if number % BROKEN_EVERY == 13:
        return b'{"id": %d, "amount": ' % number
    amount = -1 if number % REFUSED_EVERY == 5 else number % 10_007
    return json.dumps({"id": number, "account": f"a{number % 1_000}", "amount": amount}).encode()


def is_broken(number: int) -> bool:
    return number % BROKEN_EVERY == 13


def is_refused(number: int) -> bool:
    return not is_broken(number) and number % REFUSED_EVERY == 5


def produce(bootstrap: str, numbers: Iterable[int]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for number in numbers:
        value = record(number)
        while True:
            try:
                producer.produce(INPUT, value, key=b"%d" % number, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0


def pipeline_text(postgres: str, folder: Path, max_records: int) -> str:
    return f"""\
name: payments-checked
sources:
  payments: {{topic: {INPUT}, format: json, schema: "id BIGINT, account STRING, amount BIGINT", start: earliest}}
steps:
  - sql: SELECT id, account, amount, amount * 2 AS doubled FROM payments
  - expect: {{rule: "amount >= 0", otherwise: dead_letter}}
sinks:
  - {{topic: {OUTPUT}, key: account, format: json, delivery: exactly_once}}
  - {{files: {folder / "lake"}, format: parquet}}
  - {{postgres: "{postgres}", table: {TABLE}, mode: insert, create: true}}
errors: {{retries: 1000, dead_letter: {DEAD}, restart: always}}
limits: {{trigger: 100 milliseconds, max_records: {max_records}}}
"""


@dataclass
class Verdict:
    """Counts of what is wrong, by place; empty when all is well."""

    wrong: dict[str, str] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)

    def judge(self, place: str, expected: set[int], found: Iterable[int]) -> None:
        counts = Counter(found)
        self.seen[place] = counts.total()
        doubled = [number for number, count in counts.items() if count > 1]
        lost = expected - counts.keys()
        strange = counts.keys() - expected
        if doubled or lost or strange:
            self.wrong[place] = (
                f"{len(lost)} lost (such as {sorted(lost)[:3]}), "
                f"{len(doubled)} doubled (such as {sorted(doubled)[:3]}), "
                f"{len(strange)} that should not be there (such as {sorted(strange)[:3]})"
            )


def check(bootstrap: str, postgres: str, folder: Path, records: int) -> Verdict:
    good = {number for number in range(records) if not is_broken(number) and not is_refused(number)}
    bad = {number for number in range(records) if is_broken(number) or is_refused(number)}
    verdict = Verdict()
    verdict.judge("topic", good, (_right(json.loads(value)) for value in committed_values(bootstrap, OUTPUT)))
    verdict.judge("dead letters", bad, (_number(value) for value in committed_values(bootstrap, DEAD)))
    verdict.judge("parquet", good, _parquet_ids(folder / "lake"))
    verdict.judge("postgres", good, _postgres_ids(postgres))
    return verdict


def _right(row: dict[str, Any]) -> int:
    """The row's number if its columns agree with it, and a number that is none otherwise."""
    number = int(row["id"])
    amount = number % 10_007
    return number if (row["amount"], row["doubled"]) == (amount, amount * 2) else -number - 1


def _number(value: bytes) -> int:
    return int(value.split(b'"id": ')[1].split(b",")[0])


def committed_values(bootstrap: str, topic: str) -> Iterator[bytes]:
    """Every value of a topic that a reader of committed records gets, to the end."""
    return (each.value or b"" for each in committed(bootstrap, topic))


def _parquet_ids(folder: Path) -> list[int]:
    table = pyarrow.dataset.dataset(str(folder), format="parquet").to_table(["id"])
    return [int(number) for number in table["id"].to_numpy()]


def _postgres_ids(postgres: str) -> list[int]:
    with psycopg.connect(postgres) as connection:
        return [row[0] for row in connection.execute(f"SELECT id FROM {TABLE}")]
