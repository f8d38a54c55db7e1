"""`verifiable-consumer`: what a member of a group is given and reads, as lines of JSON."""

import argparse
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of
from ottla.cli.common.output import CommandError, complain
from ottla.cli.data.broker_presence import ENDLESS, await_broker
from ottla.cli.data.client_properties import ConsumerSettings, consumer_settings, load_properties
from ottla.cli.data.json_events import emit
from ottla.cli.data.kafka_clients import (
    POLL_S,
    ErrorReporter,
    StopRequest,
    commit_sync,
    in_words,
    open_consumer,
    stop_on_signals,
    subscribe,
)

EXAMPLES = """\
  ottla verifiable-consumer --topic check --group-id checkers
  ottla verifiable-consumer --topic check --group-id checkers --max-messages 1000 --verbose
  ottla verifiable-consumer --topic check --group-id checkers --group-instance-id one \\
      --assignment-strategy org.apache.kafka.clients.consumer.CooperativeStickyAssignor
"""
NOTES = """\
events, one JSON object a line: startup_complete, partitions_assigned, partitions_revoked, records_consumed, record_data
(with --verbose), offsets_committed (without --enable-autocommit), shutdown_requested, shutdown_complete.
SIGTERM ends the run in order.
"""


def main(argv: Sequence[str] | None = None, prog: str = "ottla verifiable-consumer") -> int:
    args = _parser(prog).parse(argv)
    properties = _properties(args)
    settings = consumer_settings(properties)
    with stop_on_signals() as stop:
        emit("startup_complete")
        failure: CommandError | None = None
        consumer: Consumer | None = None
        try:
            if await_broker(properties, ENDLESS, lambda: stop):
                consumer, reporter = open_consumer(settings, **{"enable.auto.offset.store": args.enable_autocommit})
                subscribe(consumer, topic=args.topic, include=None, on_assign=_assigned, on_revoke=_revoked)
                _Run(consumer, reporter, args, settings).consume(stop)
        except CommandError as error:
            failure = error
        if stop:
            emit("shutdown_requested")
        if consumer is not None:
            consumer.close()
        emit("shutdown_complete")
    if failure is not None:
        complain(str(failure))
    return 0 if failure is None else 1


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(
        prog, "Consumes a topic as a member of a group and reports events as lines of JSON.", EXAMPLES, notes=NOTES
    )
    parser.add_argument("--topic", required=True, help="the topic to read")
    parser.add_argument("--group-id", required=True, metavar="ID", help="the consumer group")
    parser.add_argument("--group-protocol", type=str.lower, default="classic", choices=["classic", "consumer"],
                        help="how the group agrees who reads what (default: classic)")  # fmt: skip
    parser.add_argument("--group-remote-assignor", metavar="NAME",
                        help="assignor of the broker, with --group-protocol consumer")  # fmt: skip
    parser.add_argument("--group-instance-id", metavar="ID", help="makes this a static member with this id")
    parser.add_argument(
        "--max-messages", type=int, default=-1, metavar="N", help="end after so many (default: -1, never)"
    )
    parser.add_argument("--session-timeout", type=int, metavar="MS",
                        help="after so long without a heartbeat the member is out (default: 45000)")  # fmt: skip
    parser.add_argument("--verbose", action="store_true", help="an event for each record")
    parser.add_argument("--enable-autocommit", action="store_true", help="commit from time to time, without events")
    parser.add_argument("--reset-policy", default="earliest", choices=["earliest", "latest", "none"],
                        help="where to start without a committed offset (default: earliest)")  # fmt: skip
    parser.add_argument("--assignment-strategy", default="org.apache.kafka.clients.consumer.RangeAssignor",
                        metavar="CLASS", help="how partitions are shared out (default: RangeAssignor)")  # fmt: skip
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    add_connection_options(parser, json=False)
    return parser


def _properties(args: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(args, ["command-config", "consumer.config"], [])
    properties |= {
        "bootstrap.servers": bootstrap_of(args),
        "group.id": args.group_id,
        "group.protocol": args.group_protocol,
        "enable.auto.commit": str(args.enable_autocommit).lower(),
        "auto.offset.reset": args.reset_policy,
    }
    if args.group_instance_id is not None:
        properties["group.instance.id"] = args.group_instance_id
    if args.group_protocol == "consumer":
        if args.session_timeout is not None:
            raise CommandError("with --group-protocol consumer the broker decides the session timeout")
        if args.group_remote_assignor is not None:
            properties["group.remote.assignor"] = args.group_remote_assignor
        return properties
    if args.group_remote_assignor is not None:
        raise CommandError("--group-remote-assignor only has a meaning with --group-protocol consumer")
    properties["partition.assignment.strategy"] = args.assignment_strategy
    if args.session_timeout is not None:
        properties["session.timeout.ms"] = str(args.session_timeout)
    return properties


def _places(partitions: list[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": place.topic, "partition": place.partition} for place in partitions]


def _assigned(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
    emit("partitions_assigned", partitions=_places(partitions))


def _revoked(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
    emit("partitions_revoked", partitions=_places(partitions))


class _Run:
    def __init__(
        self, consumer: Consumer, reporter: ErrorReporter, args: argparse.Namespace, settings: ConsumerSettings
    ) -> None:
        self._consumer = consumer
        self._reporter = reporter
        self._args = args
        self._chunk = settings.max_poll_records
        self._consumed = 0

    def consume(self, stop: StopRequest) -> None:
        limit = self._args.max_messages
        while not stop and (limit < 0 or self._consumed < limit):
            records = self._receive(self._chunk if limit < 0 else min(self._chunk, limit - self._consumed))
            if records:
                offsets = self._report(records)
                if not self._args.enable_autocommit:
                    self._commit(offsets)

    def _receive(self, wanted: int) -> list[Message]:
        first = self._consumer.poll(POLL_S)
        if self._reporter.fatal is not None:
            raise CommandError(in_words(self._reporter.fatal))
        if first is None:
            return []
        records = []
        for message in (first, *(self._consumer.consume(wanted - 1, timeout=0) if wanted > 1 else ())):
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                self._reporter(error)  # a topic that is still to be made
            else:
                raise CommandError(in_words(error))
        return records

    def _report(self, records: list[Message]) -> list[TopicPartition]:
        by_place: dict[tuple[str, int], list[Message]] = {}
        for record in records:
            by_place.setdefault((record.topic(), record.partition()), []).append(record)
        if self._args.verbose:
            for record in (record for group in by_place.values() for record in group):
                emit(
                    "record_data", key=_text(record.key()), value=_text(record.value()), topic=record.topic(),
                    partition=record.partition(), offset=record.offset(),
                )  # fmt: skip
        self._consumed += len(records)
        summaries = [
            {
                "topic": topic,
                "partition": partition,
                "count": len(group),
                "minOffset": group[0].offset(),
                "maxOffset": group[-1].offset(),
            }
            for (topic, partition), group in by_place.items()
        ]
        emit("records_consumed", count=len(records), partitions=summaries)
        return [
            TopicPartition(topic, partition, group[-1].offset() + 1) for (topic, partition), group in by_place.items()
        ]

    def _commit(self, offsets: list[TopicPartition]) -> None:
        error = commit_sync(self._consumer, offsets)
        committed = [{"topic": place.topic, "partition": place.partition, "offset": place.offset} for place in offsets]
        if error is None:
            emit("offsets_committed", offsets=committed, success=True)
        else:
            emit("offsets_committed", offsets=committed, error=in_words(error), success=False)


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")
