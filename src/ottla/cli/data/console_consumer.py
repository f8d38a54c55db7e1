"""`console-consumer`: the records of topics on standard output."""

import argparse
import random
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of, read_properties
from ottla.cli.common.output import CommandError, complain, warn
from ottla.cli.data.broker_presence import ENDLESS, Patience, await_broker
from ottla.cli.data.client_properties import ConsumerSettings, consumer_settings, load_properties
from ottla.cli.data.deserializers import UndecodableRecord
from ottla.cli.data.formatters import DEFAULT_FORMATTER, Formatter, JsonFormatter, make_formatter
from ottla.cli.data.kafka_clients import (
    POLL_S,
    ErrorReporter,
    StopRequest,
    error_of,
    hiding_internal_topics,
    in_words,
    open_consumer,
    stop_on_signals,
    subscribe,
    whole_name_pattern,
)
from ottla.cli.data.own_code import OwnCodeFailed
from ottla.cli.data.refusals import warn_if_missing, why_not_read

EXAMPLES = """\
  ottla console-consumer --topic news --from-beginning
  ottla console-consumer --topic news --group readers --max-messages 10
  ottla console-consumer --include 'news|sport.*' --timeout-ms 5000
  ottla console-consumer --topic news --partition 0 --offset 42
  ottla console-consumer --topic news --from-beginning \\
      --formatter-property print.timestamp=true --formatter-property print.key=true
  ottla console-consumer --topic counts --from-beginning --formatter-property print.key=true \\
      --value-deserializer org.apache.kafka.common.serialization.LongDeserializer
  ottla console-consumer --topic __consumer_offsets --from-beginning \\
      --formatter org.apache.kafka.tools.consumer.OffsetsMessageFormatter
"""
NOTES = """\
formatters (--formatter):
  DefaultMessageFormatter, LoggingMessageFormatter, NoOpMessageFormatter, ChecksumMessageFormatter, and for
  __consumer_offsets OffsetsMessageFormatter and GroupMetadataMessageFormatter; full class names, old and new, work too

formatter properties (--formatter-property, --property):
  print.timestamp print.key print.offset print.partition print.headers print.epoch   false unless set to true
  print.value=true  key.separator=\\t  line.separator=\\n  headers.separator=,  null.literal=null
  key.deserializer, value.deserializer, headers.deserializer: one of Java's standard deserializers, or Python

code of your own (docs/tools.md): deserializers and formatters are also taken as module:function or module:Class, from
the current folder or installed:
  ottla console-consumer --topic counts --value-deserializer shop:price --formatter shop:Table

without a broker the tool says so and waits; with --timeout-ms it then ends with exit code 1. A topic that stays quiet
for --timeout-ms ends it with exit code 0.
"""
SMALLEST_RANDOM_GROUP, LARGEST_RANDOM_GROUP = 0, 99_999

# Errors that come with a record's place in the queue but will go away: the client tries again.
_PASSING = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError.LEADER_NOT_AVAILABLE})


def main(argv: Sequence[str] | None = None, prog: str = "ottla console-consumer", examples: str = EXAMPLES) -> int:
    args = _parser(prog, examples).parse(argv)
    _check(args)
    formatter = JsonFormatter() if args.json else make_formatter(args.formatter, _formatter_properties(args))
    properties = consumer_properties(args)
    settings = consumer_settings(properties)
    if args.include is not None:
        settings = hiding_internal_topics(settings)
    with stop_on_signals() as stop:
        if not await_broker(properties, _patience(args), lambda: stop):
            return stop.exit_code
        # Only what was printed is committed, so offsets are stored by hand.
        consumer, reporter = open_consumer(settings, **{"enable.auto.offset.store": False})
        printer = _Printer(consumer, formatter, sys.stdout.buffer, skip_errors=args.skip_message_on_error)
        try:
            _start(consumer, args)
            return _run(printer, consumer, reporter, settings, args, stop)
        finally:
            _close(consumer)
            print(f"Processed a total of {printer.count} messages", file=sys.stderr)
            if args.enable_systest_events:
                print("shutdown_complete", flush=True)


def _parser(prog: str, examples: str) -> ToolParser:
    parser = ToolParser(prog, "Prints the records of topics.", examples, notes=NOTES)
    parser.add_argument("--topic", help="the topic to read")
    parser.add_argument("--include", "--whitelist", metavar="REGEX", help="read every topic whose name matches")
    parser.add_argument("--partition", type=int, help="read this partition only, without a group")
    parser.add_argument("--offset", metavar="N|earliest|latest", help="where to start in --partition (default: latest)")
    parser.add_argument(
        "--from-beginning", action="store_true", help="where the group has no offset, start at the first record kept"
    )
    parser.add_argument("--max-messages", type=int, metavar="N", help="end after so many records")
    parser.add_argument("--timeout-ms", type=int, metavar="MS", help="end when no record came for so long")
    parser.add_argument("--group", metavar="ID", help="the consumer group (default: one of its own, that is not kept)")
    parser.add_argument("--isolation-level", choices=["read_uncommitted", "read_committed"],
                        help="whether records of open or aborted transactions are shown")  # fmt: skip
    parser.add_argument("--formatter", default=DEFAULT_FORMATTER, metavar="CLASS|MODULE:NAME",
                        help="how records are printed, see below")  # fmt: skip
    parser.add_argument("--formatter-property", "--property", action="append", default=[], metavar="KEY=VALUE",
                        help="a property of the formatter, see below")  # fmt: skip
    parser.add_argument("--formatter-config", metavar="FILE", help="file with properties of the formatter")
    parser.add_argument("--key-deserializer", metavar="CLASS|MODULE:NAME", help="how keys are read")
    parser.add_argument("--value-deserializer", metavar="CLASS|MODULE:NAME", help="how values are read")
    parser.add_argument("--skip-message-on-error", action="store_true",
                        help="go on after a record that cannot be printed")  # fmt: skip
    parser.add_argument("--enable-systest-events", action="store_true", help="print shutdown_complete at the end")
    parser.add_argument(
        "--new-consumer", action="store_true", help=argparse.SUPPRESS
    )  # from Kafka 0.9: there is no other
    parser.add_argument("--command-property", "--consumer-property", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of the consumer, such as auto.offset.reset=earliest")  # fmt: skip
    parser.add_argument("--consumer.config", dest="consumer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    add_connection_options(parser)
    return parser


def _check(args: argparse.Namespace) -> None:
    if (args.topic is None) == (args.include is None):
        raise CommandError("give either --topic or --include")
    if args.partition is None and args.offset is not None:
        raise CommandError("the partition is required when offset is specified")
    if args.partition is not None:
        if args.topic is None:
            raise CommandError("the topic is required when partition is specified")
        if args.partition < 0:
            raise CommandError(f"there is no partition {args.partition}")
        if args.from_beginning and args.offset is not None:
            raise CommandError("options from-beginning and offset cannot be specified together")
        _offset(args)
    if args.include is not None:
        whole_name_pattern(args.include)
    if args.max_messages is not None and args.max_messages < -1:
        raise CommandError("--max-messages is a number of records, or -1 for no limit")


def consumer_properties(args: argparse.Namespace) -> dict[str, str]:
    properties = load_properties(args, ["command-config", "consumer.config"], ["command-property"])
    properties["bootstrap.servers"] = bootstrap_of(args)
    properties.setdefault("client.id", "console-consumer")
    if args.isolation_level:
        properties["isolation.level"] = args.isolation_level
    reset = properties.setdefault("auto.offset.reset", "earliest" if args.from_beginning else "latest")
    if args.from_beginning and reset != "earliest":
        raise CommandError(f"--from-beginning contradicts auto.offset.reset={reset}: remove one of them")
    _choose_group(properties, args)
    return properties


def _choose_group(properties: dict[str, str], args: argparse.Namespace) -> None:
    named = {group for group in (args.group, properties.get("group.id")) if group}
    if len(named) > 1:
        raise CommandError(f"--group and group.id name different groups: {', '.join(sorted(named))}")
    if named and args.partition is not None:
        raise CommandError("options group and partition cannot be specified together")
    if named:
        properties["group.id"] = named.pop()
        return
    number = random.randint(SMALLEST_RANDOM_GROUP, LARGEST_RANDOM_GROUP)  # noqa: S311 - a name, not a secret
    properties["group.id"] = f"console-consumer-{number}"
    properties.setdefault("enable.auto.commit", "false")  # nobody will come back for this group's offsets


def _formatter_properties(args: argparse.Namespace) -> dict[str, str]:
    properties = read_properties(args.formatter_config) if args.formatter_config else {}
    if args.key_deserializer:
        properties["key.deserializer"] = args.key_deserializer
    if args.value_deserializer:
        properties["value.deserializer"] = args.value_deserializer
    for pair in args.formatter_property:
        name, equals, value = pair.partition("=")  # a separator may be a blank, so the value is taken as it is
        if not equals or not name.strip():
            raise CommandError(f"--formatter-property wants key=value, not `{pair}`")
        properties[name.strip()] = value.replace("\\t", "\t").replace("\\n", "\n")
    return properties


def _start(consumer: Consumer, args: argparse.Namespace) -> None:
    if args.partition is None:
        subscribe(consumer, topic=args.topic, include=args.include)
        return
    try:
        consumer.assign([TopicPartition(args.topic, args.partition, _offset(args))])
    except KafkaException as exception:
        raise CommandError(f"cannot read {args.topic}-{args.partition}: {error_of(exception)}") from exception
    warn_if_missing(consumer, args.topic)  # librdkafka itself says nothing of it for half a minute


def _offset(args: argparse.Namespace) -> int:
    given = args.offset.lower() if args.offset is not None else "earliest" if args.from_beginning else "latest"
    named = {"earliest": int(OFFSET_BEGINNING), "latest": int(OFFSET_END)}
    if given in named:
        return named[given]
    if not given.isdecimal():
        raise CommandError(f"the offset '{given}' is not valid: it is 'earliest', 'latest' or a number from 0")
    return int(given)


class _Printer:
    """Prints records and remembers how far each partition has been printed."""

    def __init__(self, consumer: Consumer, formatter: Formatter, out: BinaryIO, *, skip_errors: bool) -> None:
        self._consumer = consumer
        self._formatter = formatter
        self._out = out
        self._skip_errors = skip_errors
        self.count = 0

    def show(self, records: Sequence[Message]) -> None:
        printed: dict[tuple[str, int], Message] = {}
        try:
            for record in records:
                self.count += 1
                self._show(record)
                printed[record.topic(), record.partition()] = record
            self._out.flush()
        finally:
            for record in printed.values():
                self._store(record)

    def _show(self, record: Message) -> None:
        try:
            self._formatter.write(record, self._out)
        except (UndecodableRecord, OwnCodeFailed) as error:
            place = f"{record.topic()}-{record.partition()} at offset {record.offset()}"
            if not self._skip_errors:
                raise CommandError(f"cannot print the record of {place}: {error}") from error
            warn(f"skipping the record of {place}: {error}")

    def _store(self, record: Message) -> None:
        try:
            self._consumer.store_offsets(record)
        except KafkaException:
            return  # the partition has been given to another member meanwhile, who will read these records again


def _patience(args: argparse.Namespace) -> Patience:
    """No record within --timeout-ms is a quiet topic; no broker is an error, but otherwise it may still come."""
    return Patience(_quiet_s(args), "--timeout-ms") if _quiet_s(args) < float("inf") else ENDLESS


def _quiet_s(args: argparse.Namespace) -> float:
    return args.timeout_ms / 1000 if args.timeout_ms is not None and args.timeout_ms >= 0 else float("inf")


def _run(
    printer: _Printer,
    consumer: Consumer,
    reporter: ErrorReporter,
    settings: ConsumerSettings,
    args: argparse.Namespace,
    stop: StopRequest,
) -> int:
    limit = args.max_messages if args.max_messages is not None and args.max_messages >= 0 else None
    quiet_s = _quiet_s(args)
    last_record = time.monotonic()
    while not stop:
        wanted = settings.max_poll_records if limit is None else min(settings.max_poll_records, limit - printer.count)
        if wanted <= 0:
            return 0
        records = _receive(consumer, wanted, min(POLL_S, quiet_s), reporter, settings)
        if records:
            printer.show(records)
            last_record = time.monotonic()
        elif time.monotonic() - last_record > quiet_s:
            return 0
    return stop.exit_code


def _receive(
    consumer: Consumer, wanted: int, timeout_s: float, reporter: ErrorReporter, settings: ConsumerSettings
) -> list[Message]:
    """What is there, at most `wanted`; waits only for the first, so that a record is printed as it comes."""
    first = consumer.poll(timeout_s)
    if reporter.fatal is not None:
        raise CommandError(in_words(reporter.fatal))
    if first is None:
        return []
    rest = consumer.consume(wanted - 1, timeout=0) if wanted > 1 else []
    records = []
    for message in (first, *rest):
        error = message.error()
        if error is None:
            records.append(message)
        elif error.code() in _PASSING and not error.fatal():
            reporter(error)
        else:
            raise CommandError(why_not_read(error, settings.librdkafka))
    return records


def _close(consumer: Consumer) -> None:
    try:
        consumer.close()  # commits what was printed and leaves the group
    except KafkaException as exception:
        complain(f"leaving the group failed: {error_of(exception)}")
