"""`verifiable-producer`: counted records, and a line of JSON for each that was acknowledged or lost."""

import argparse
import sys
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of
from ottla.cli.common.output import CommandError
from ottla.cli.data.broker_presence import look_for_broker
from ottla.cli.data.client_properties import load_properties, producer_settings
from ottla.cli.data.json_events import emit
from ottla.cli.data.kafka_clients import (
    POLL_S,
    BlockingSender,
    StopRequest,
    flush_all,
    in_words,
    open_producer,
    stop_on_signals,
)
from ottla.cli.data.throttle import Throttle

EXAMPLES = """\
  ottla verifiable-producer --topic check --max-messages 1000
  ottla verifiable-producer --topic check --throughput 100 --acks -1 --repeating-keys 10 --value-prefix 7
"""
NOTES = """\
events, one JSON object a line: startup_complete, producer_send_success, producer_send_error, shutdown_complete,
tool_data (how many were sent and acknowledged). SIGTERM ends the run in order.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla verifiable-producer") -> int:
    args = _parser(prog).parse(argv)
    if args.repeating_keys is not None and args.repeating_keys < 1:
        raise CommandError(f"--repeating-keys is at least 1, not {args.repeating_keys}")
    properties = {"acks": str(args.acks), "retries": "0"}  # a lost record is reported, not sent again behind our back
    properties |= load_properties(args, ["command-config", "producer.config"], [])
    properties["bootstrap.servers"] = bootstrap_of(args)
    settings = producer_settings(properties)
    look_for_broker(properties)  # what is lost is reported record by record, so it is not waited for
    producer, _reporter = open_producer(settings)
    with stop_on_signals() as stop:
        run = _Run(producer, args, settings.max_block_s)
        started = time.time()
        emit("startup_complete")
        run.send_all(stop)
        flush_all(producer, stop)
        emit("shutdown_complete")
        emit(
            "tool_data", sent=run.sent, acked=run.acknowledged, target_throughput=args.throughput,
            avg_throughput=run.acknowledged / max(time.time() - started, 0.001),
        )  # fmt: skip
    return 0


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Produces increasing numbers and reports each as a line of JSON.", EXAMPLES, notes=NOTES)
    parser.add_argument("--topic", required=True, help="the topic to send to")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="how many records (default: -1, no end)"
    )
    parser.add_argument("--throughput", type=int, default=-1, metavar="N",
                        help="records a second to keep to (default: -1, no limit)")  # fmt: skip
    parser.add_argument("--acks", type=int, default=-1, choices=[0, 1, -1], help="acknowledgements to wait for")
    parser.add_argument("--message-create-time", type=int, default=-1, metavar="MS",
                        help="timestamp of the first record; later ones follow the clock (default: now)")  # fmt: skip
    parser.add_argument("--value-prefix", type=int, metavar="N", help="values are N.0, N.1, ... instead of 0, 1, ...")
    parser.add_argument(
        "--repeating-keys", type=int, metavar="N", help="keys 0 to N-1, again and again (default: none)"
    )
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    add_connection_options(parser, json=False)
    return parser


class _Run:
    def __init__(self, producer: Producer, args: argparse.Namespace, max_block_s: float) -> None:
        self._producer = producer
        self._sender = BlockingSender(producer, max_block_s)
        self._args = args
        self._started_ms = time.time_ns() // 1_000_000
        self.sent = 0
        self.acknowledged = 0

    def send_all(self, stop: StopRequest) -> None:
        args = self._args
        throttle = Throttle(args.throughput, time.monotonic())
        while not stop and (args.max_messages < 0 or self.sent < args.max_messages):
            wait_s = throttle.wait_s(self.sent, time.monotonic())
            if wait_s > 0:
                self._producer.poll(min(wait_s, POLL_S))
                continue
            self._send(self.sent)
        sys.stdout.flush()

    def _send(self, number: int) -> None:
        args = self._args
        value = str(number) if args.value_prefix is None else f"{args.value_prefix}.{number}"
        key = None if args.repeating_keys is None else str(number % args.repeating_keys)
        created = {}
        if args.message_create_time >= 0:
            created["timestamp"] = args.message_create_time + time.time_ns() // 1_000_000 - self._started_ms

        def delivered(error: KafkaError | None, record: Message) -> None:
            if error is None:
                self.acknowledged += 1
                emit(
                    "producer_send_success", key=key, value=value, offset=record.offset(), topic=record.topic(),
                    partition=record.partition(),
                )  # fmt: skip
            else:
                self._failed(key, value, error.name(), in_words(error))

        self.sent += 1
        try:
            self._sender.send(args.topic, key=key, value=value, on_delivery=delivered, **created)
        except CommandError as error:
            self._failed(key, value, type(error).__name__, str(error))

    def _failed(self, key: str | None, value: str, exception: str, message: str) -> None:
        emit("producer_send_error", exception=exception, key=key, value=value, message=message, topic=self._args.topic)
