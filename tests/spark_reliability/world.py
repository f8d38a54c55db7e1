"""What goes into the pipeline under test: payments, some of them twice or bad, and accounts that change meanwhile.

Payments come in slices. The accounts get their version v before the first payment of slice v is sent, and version
v + 1 only when the pipeline is done with all of slice v - 1: so it is known which versions a payment can have met.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

INPUT = "payments"
ACCOUNTS = "accounts"
OUTPUT = "payments.checked"
COUNTED = "payments.counted"
DEAD = "payments.dead"
TABLE = "payments_counted"
GROUP = "ottla.payments.checked.payments"
GROUP_COUNTED = "ottla.payments.counted.checked"
PARTITIONS = 4

ACCOUNT_COUNT = 200
MS_APART = 10
"""Of two payments, in event time."""
BROKEN_EVERY, REFUSED_EVERY, FAILING_EVERY, REPEATED_EVERY = 1_000, 777, 3_331, 50
CLOSED_EVERY = 10

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_HERE = Path(__file__).parent


def record(number: int) -> bytes:
    """Payment `number`: mostly good, some that no parser reads, some that break the rule, some that fail in a step."""
    if is_broken(number):
        return b'{"id": %d, "amount": ' % number
    amount = -1 if is_refused(number) else amount_of(number)
    at = (_BEGIN + timedelta(milliseconds=number * MS_APART)).isoformat()
    return json.dumps({"id": number, "account": account_of(number), "amount": amount, "at": at}).encode()


def amount_of(number: int) -> int:
    return number % 10_007


def account_of(number: int) -> str:
    return f"a{number % ACCOUNT_COUNT}"


def is_broken(number: int) -> bool:
    return number % BROKEN_EVERY == 13


def is_refused(number: int) -> bool:
    return not is_broken(number) and number % REFUSED_EVERY == 5


def is_failing(number: int) -> bool:
    return not is_broken(number) and number % FAILING_EVERY == 9


def is_bad(number: int) -> bool:
    return is_broken(number) or is_refused(number) or is_failing(number)


def is_repeated(number: int) -> bool:
    """Sent a second time, in the slice after its own. Broken ones are not: each would be a dead letter of its own."""
    return number % REPEATED_EVERY == 7 and not is_broken(number)


def is_closed(account: int, version: int) -> bool:
    """Some accounts are deleted from the table in every other version."""
    return account % CLOSED_EVERY == 3 and version % 2 == 1


def account_record(account: int, version: int) -> bytes | None:
    if is_closed(account, version):
        return None
    return json.dumps({"account": f"a{account}", "version": version}).encode()


@dataclass(frozen=True)
class Payments:
    """So many of them, in so many slices."""

    records: int
    slices: int

    @property
    def sent(self) -> int:
        """With those that are sent twice."""
        return self.records + sum(map(is_repeated, range(self._begin(self.slices - 1))))

    @property
    def good(self) -> set[int]:
        return {number for number in range(self.records) if not is_bad(number)}

    @property
    def bad(self) -> set[int]:
        return {number for number in range(self.records) if is_bad(number)}

    @property
    def within(self) -> timedelta:
        """How far apart in time payments can be that are on their way together: of four slices at most."""
        return timedelta(milliseconds=MS_APART * self.records) * 4 / self.slices

    def sent_in(self, part: int) -> Iterator[tuple[int, int]]:
        """The payments of a slice in their order, each with its partition; repeated ones go to another."""
        own = range(self._begin(part), self._begin(part + 1))
        yield from ((number, number % PARTITIONS) for number in own)
        before = range(self._begin(part - 1), own.start) if part else range(0)
        yield from ((number, (number + 1) % PARTITIONS) for number in before if is_repeated(number))

    def versions_met(self, number: int) -> set[int | None]:
        """What the accounts can have said about this payment; None if its account was closed."""
        first = number * self.slices // self.records
        # The second copy of a payment may overtake the first.
        last = min(first + (2 if is_repeated(number) else 1), self.slices - 1)
        account = number % ACCOUNT_COUNT
        return {None if is_closed(account, version) else version for version in range(first, last + 1)}

    def _begin(self, part: int) -> int:
        return -(-part * self.records // self.slices)


def write_pipeline(file: Path, postgres: str, folder: Path, max_records: int, payments: Payments) -> None:
    """Two queries: the first writes topic, files and dead letters in one pass, the second reads what it has written,
    keeps state of its own and writes to PostgreSQL and to a topic."""
    within = f"{payments.within.total_seconds():.0f} seconds"
    file.with_name("counting.py").write_text((_HERE / "counting.py").read_text())
    file.write_text(f"""\
name: payments
tables:
  accounts: {{topic: {ACCOUNTS}, format: json, schema: "account STRING, version INT"}}
phases:
  - name: checked
    sources:
      payments:
        topic: {INPUT}
        format: json
        schema: "id BIGINT, account STRING, amount BIGINT, at TIMESTAMP"
        start: earliest
    steps:
      - deduplicate: {{keys: [id], time: at, within: {within}}}
      - join: {{with: accounts, on: account, type: left, columns: [version]}}
      - map: {{columns: {{doubled: "amount * 2", share: "10007 DIV (id % {FAILING_EVERY} - 9)"}}}}
      - expect: {{rule: "amount >= 0", otherwise: dead_letter}}
      - sql: SELECT id, account, amount, doubled, version FROM input
    sinks:
      - {{topic: {OUTPUT}, key: account, format: json, delivery: exactly_once}}
      - {{files: {folder / "lake"}, format: parquet}}
  - name: counted
    sources:
      checked: {{topic: {OUTPUT}, format: json, schema: "id BIGINT, account STRING, amount BIGINT", start: earliest}}
    steps:
      - stateful: "counting:Counting"
        group_by: [account]
        schema: "id BIGINT, account STRING, amount BIGINT, place BIGINT, total BIGINT"
    sinks:
      - {{postgres: "{postgres}", table: {TABLE}, mode: insert, create: true}}
      - {{topic: {COUNTED}, key: account, format: json, delivery: exactly_once}}
errors: {{retries: 1000, dead_letter: {DEAD}, restart: always}}
limits: {{trigger: 100 milliseconds, max_records: {max_records}}}
""")
