"""Transactions of `producer-perf-test`: one after the other, each as long as was asked for."""

import argparse
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from confluent_kafka import KafkaException

from ottla.cli.common.output import CommandError
from ottla.cli.data.client_property_tables import integer
from ottla.cli.data.kafka_clients import error_of

DEFAULT_DURATION_MS = 3000
DEFAULT_TIMEOUT_MS = 60_000
DEFAULT_ID_PREFIX = "performance-producer-"
INIT_TIMEOUT_S = 60.0
END_TIMEOUT_S = 60.0


class TransactionalProducer(Protocol):
    def init_transactions(self, timeout: float) -> object: ...
    def begin_transaction(self) -> object: ...
    def commit_transaction(self, timeout: float) -> object: ...


class Plan(NamedTuple):
    """What the options ask for."""

    duration_s: float
    transactional_id: str
    timeout_ms: int

    def apply(self, librdkafka: dict[str, Any]) -> None:
        librdkafka["transactional.id"] = self.transactional_id
        librdkafka["transaction.timeout.ms"] = self.timeout_ms
        # A record that is older than its transaction may be is of no use, and librdkafka insists on it.
        librdkafka["delivery.timeout.ms"] = min(int(librdkafka["delivery.timeout.ms"]), self.timeout_ms)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactional-id", metavar="ID", help="write in transactions under this id")
    parser.add_argument("--transaction-duration-ms", type=int, metavar="MS",
                        help="commit a transaction after this time (default, with an id: 3000)")  # fmt: skip


def plan(args: argparse.Namespace, properties: dict[str, str]) -> Plan | None:
    """Takes what concerns transactions out of the properties; None if nothing asks for them."""
    name = properties.pop("transactional.id", None)
    timeout = properties.pop("transaction.timeout.ms", None)
    if args.transactional_id is not None:
        name = args.transactional_id
    if name is not None and not name:
        raise CommandError("--transactional-id cannot be empty")
    if args.transaction_duration_ms is not None and args.transaction_duration_ms <= 0:
        raise CommandError(f"--transaction-duration-ms should be greater than zero: {args.transaction_duration_ms}")
    if name is None:
        if args.transaction_duration_ms is None:
            return None
        name = f"{DEFAULT_ID_PREFIX}{uuid.uuid4()}"
    timeout_ms = DEFAULT_TIMEOUT_MS if timeout is None else integer("transaction.timeout.ms", timeout)
    return Plan((args.transaction_duration_ms or DEFAULT_DURATION_MS) / 1000, name, timeout_ms)


class Transactions:
    def __init__(self, producer: TransactionalProducer, duration_s: float) -> None:
        self._producer = producer
        self._duration_s = duration_s
        self._ends_at: float | None = None

    def prepare(self) -> None:
        self._do(lambda: self._producer.init_transactions(INIT_TIMEOUT_S), "begin to write in transactions")

    def before_sending(self, now: float) -> None:
        if self._ends_at is None:
            self._do(self._producer.begin_transaction, "begin a transaction")
            self._ends_at = now + self._duration_s

    def is_due(self, now: float) -> bool:
        return self._ends_at is not None and now >= self._ends_at

    def end(self) -> None:
        """Commit what is open. Everything sent should be acknowledged by now."""
        if self._ends_at is not None:
            self._ends_at = None
            self._do(lambda: self._producer.commit_transaction(END_TIMEOUT_S), "commit a transaction")

    @staticmethod
    def _do(action: Callable[[], object], what: str) -> None:
        try:
            action()
        except KafkaException as exception:
            raise CommandError(f"cannot {what}: {error_of(exception)}") from exception
