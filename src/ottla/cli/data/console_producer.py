"""`console-producer`: lines of standard input become records of a topic."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import IO, Any

from confluent_kafka import KafkaError, Message, Producer

from ottla.cli.common.options import ToolParser, add_connection_options, bootstrap_of, parse_pairs, read_properties
from ottla.cli.common.output import CommandError, complain
from ottla.cli.data.broker_presence import ENDLESS, Patience, await_broker
from ottla.cli.data.client_properties import ProducerSettings, load_properties, producer_settings
from ottla.cli.data.console_input import is_typed, lines, polled
from ottla.cli.data.console_reader import LineReader, ParsedLine, check_reader_class
from ottla.cli.data.kafka_clients import (
    EXIT_INTERRUPTED,
    POLL_S,
    BlockingSender,
    StopRequest,
    flush_all,
    open_producer,
    partitions_of,
    stop_on_signals,
)
from ottla.cli.data.own_code import OwnLine, OwnPartitioner, OwnReader, is_own
from ottla.cli.data.refusals import WhyNotSent, warn_if_missing

EXAMPLES = """\
  echo hello | ottla console-producer --topic news
  ottla console-producer --topic news --reader-property parse.key=true --reader-property key.separator=:
  printf 'source:web\\tcarol\\t7\\n' | ottla console-producer --topic scores \\
      --reader-property parse.headers=true --reader-property parse.key=true
  ottla console-producer --topic news --compression-codec zstd --request-required-acks 1 < lines.txt
  ottla console-producer --topic news --command-property linger.ms=5 --command-config client.properties
"""
NOTES = """\
line reader properties (--reader-property, --property):
  parse.key=false         lines start with a key
  key.separator=\\t        what stands between key and value
  parse.headers=false     lines start with headers, before the key
  headers.delimiter=\\t    what stands after the headers
  headers.separator=,     what stands between two headers
  headers.key.separator=: what stands between a header's name and its value
  null.marker=            a key, value or header value that equals this is null
  ignore.error=false      take a line without the separators as a value

code of your own (docs/tools.md): the line reader and the partitioner are also taken as module:function or module:Class,
from the current folder or installed:
  ottla console-producer --topic sold --line-reader shop:read --producer-property partitioner.class=shop:by_first_letter

without a broker the tool says so and waits: for ever if a person types, else for --max-block-ms, and then ends with
exit code 1 without having read its input. Records that could not be delivered are named and counted, and the exit code
is 1.
"""

# Each option with the producer setting it controls and Kafka's default for it.
_PRODUCER_OPTIONS: tuple[tuple[str, str, str, str], ...] = (
    ("timeout", "linger.ms", "1000", "milliseconds a record may wait for others to share its batch"),
    ("request-required-acks", "acks", "-1", "acknowledgements to wait for: -1 or all, 1, 0"),
    ("request-timeout-ms", "request.timeout.ms", "1500", "milliseconds to wait for the answer to a request"),
    ("message-send-max-retries", "retries", "3", "attempts before a record is given up"),
    ("retry-backoff-ms", "retry.backoff.ms", "100", "milliseconds between attempts"),
    ("socket-buffer-size", "send.buffer.bytes", "102400", "size of the socket's send buffer"),
    ("max-memory-bytes", "buffer.memory", "33554432", "memory for records that are not sent yet"),
    ("batch-size", "batch.size", "16384", "bytes of records for one partition that go in one batch"),
    ("max-partition-memory-bytes", "batch.size", "16384", "older name of --batch-size, stronger where both are given"),
    ("metadata-expiry-ms", "metadata.max.age.ms", "300000", "milliseconds after which the topic's metadata is renewed"),
    ("max-block-ms", "max.block.ms", "60000", "milliseconds a send may wait for room or for the topic"),
)
FAILURES_SHOWN_MAX = 10


def main(argv: Sequence[str] | None = None, prog: str = "ottla console-producer", examples: str = EXAMPLES) -> int:
    args = _parser(prog, examples).parse(argv)
    reader_properties = _reader_properties(args)
    properties = producer_properties(args)
    partitioner = _own_partitioner(properties, reader_properties)
    reader = _reader(args.line_reader, reader_properties)
    settings = producer_settings(properties)
    # Who types can wait and sees why; a pipe ends after the time that a send may block, before anything is read of it.
    patience = ENDLESS if is_typed(sys.stdin.buffer) else Patience(settings.max_block_s, "max.block.ms")
    with stop_on_signals() as stop:
        if not await_broker(properties, patience, lambda: stop, lost="nothing was read from standard input or sent"):
            return EXIT_INTERRUPTED
        producer, _reporter = open_producer(settings)
        chooser = None if partitioner is None else _Chooser(producer, args.topic, settings.max_block_s, partitioner)
        return _send_lines(producer, settings, reader, args, stop, chooser)


def _parser(prog: str, examples: str) -> ToolParser:
    parser = ToolParser(prog, "Sends each line of standard input to a topic as one record.", examples, notes=NOTES)
    parser.add_argument("--topic", required=True, help="the topic to send to")
    parser.add_argument("--sync", action="store_true", help="wait for each record's acknowledgement before the next")
    parser.add_argument(
        "--compression-codec", nargs="?", const="gzip", metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; without a value gzip (default: none)",
    )  # fmt: skip
    for option, setting, default, words in _PRODUCER_OPTIONS:
        parser.add_argument(f"--{option}", metavar="N", help=f"{words} ({setting}; default: {default})")
    parser.add_argument("--line-reader", "--reader", default="org.apache.kafka.tools.LineMessageReader",
                        metavar="CLASS|MODULE:NAME",
                        help="how lines are read: org.apache.kafka.tools.LineMessageReader, or Python")  # fmt: skip
    parser.add_argument("--reader-property", "--property", action="append", default=[], metavar="KEY=VALUE",
                        help="a property of the line reader, see below")  # fmt: skip
    parser.add_argument("--reader-config", metavar="FILE", help="file with properties of the line reader")
    parser.add_argument("--command-property", "--producer-property", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of the producer, such as linger.ms=5")  # fmt: skip
    parser.add_argument("--producer.config", dest="producer_config", metavar="FILE",
                        help="older name of --command-config")  # fmt: skip
    add_connection_options(parser, json=False)
    return parser


def producer_properties(args: argparse.Namespace) -> dict[str, str]:
    """Settings from files and properties, and the options over them; an option's default only fills a gap."""
    properties = load_properties(args, ["command-config", "producer.config"], ["command-property"])
    properties["bootstrap.servers"] = bootstrap_of(args)
    if args.compression_codec is not None:
        properties["compression.type"] = args.compression_codec
    properties.setdefault("client.id", "console-producer")
    for option, setting, default, _words in _PRODUCER_OPTIONS:
        given = getattr(args, option.replace("-", "_"))
        if given is not None:
            properties[setting] = given
        else:
            properties.setdefault(setting, default)
    return properties


def _reader_properties(args: argparse.Namespace) -> dict[str, str]:
    properties = read_properties(args.reader_config) if args.reader_config else {}
    # Unlike other pairs, a separator may be a blank, so values are taken as they are.
    for pair in args.reader_property:
        name, equals, value = pair.partition("=")
        if not equals:
            parse_pairs([pair], "--reader-property")
        properties[name.strip()] = value.replace("\\t", "\t")
    return properties


def _reader(name: str, properties: dict[str, str]) -> LineReader | OwnReader:
    if is_own(name):
        return OwnReader(name, properties)
    check_reader_class(name)
    return LineReader(properties)


def _own_partitioner(properties: dict[str, str], reader_properties: dict[str, str]) -> OwnPartitioner | None:
    """Taken out of the settings where it is Python; people write it with --property, too."""
    for named in (properties, reader_properties):
        if is_own(named.get("partitioner.class", "")):
            reference = named.pop("partitioner.class")
            return OwnPartitioner(reference, {**properties, **reader_properties})
    return None


class _Chooser:
    """A partitioner with the topic that it chooses in."""

    def __init__(self, producer: Producer, topic: str, max_block_s: float, partitioner: OwnPartitioner) -> None:
        self._partitioner = partitioner
        self._count = 0
        deadline = time.monotonic() + max_block_s
        # A topic that is made by asking for it is not there at once.
        while not self._count:
            self._count = len(partitions_of(producer, topic, max_block_s))
            if not self._count and time.monotonic() > deadline:
                raise CommandError(f"Topic {topic} not present in metadata after {max_block_s * 1000:.0f} ms.")
            if not self._count:
                producer.poll(POLL_S)

    def __call__(self, record: ParsedLine | OwnLine, number: int) -> int:
        return self._partitioner.partition(record.key, record.value, self._count, number)


class _Deliveries:
    """Counts failures and says what failed; the run goes on, as with Kafka's tool."""

    def __init__(self, settings: ProducerSettings) -> None:
        self.failed = 0
        self._why = WhyNotSent(settings.librdkafka)

    def __call__(self, error: KafkaError | None, record: Message) -> None:
        if error is None:
            return
        self.failed += 1
        if self.failed <= FAILURES_SHOWN_MAX:
            complain(
                f"a record for {record.topic()} (key {_shown(record.key())}) was not sent: {self._why(error, record)}"
            )

    def say_sum(self, left: int) -> None:
        """`left` were under way when the tool was told to stop at once."""
        if self.failed > FAILURES_SHOWN_MAX:
            complain(f"... and {self.failed - FAILURES_SHOWN_MAX} more")
        if self.failed:
            complain(f"{self.failed} records were not sent")
        if left:
            complain(f"{left} records may not have been sent: nobody acknowledged them before the end")


def _shown(data: bytes | None) -> str:
    return "null" if data is None else f"'{data.decode(errors='replace')}'"


def _send_lines(
    producer: Producer,
    settings: ProducerSettings,
    reader: LineReader | OwnReader,
    args: argparse.Namespace,
    stop: StopRequest,
    choose: _Chooser | None = None,
) -> int:
    deliveries = _Deliveries(settings)
    sender = BlockingSender(producer, settings.max_block_s)
    # While a person thinks, or a pipe is quiet, say what became of the records sent so far.
    source = polled(sys.stdin.buffer, lambda: producer.poll(0), lambda: stop)
    try:
        for number, record in _records(reader, source, stop):
            fields = _fields(record)
            if choose is not None and "partition" not in fields:
                fields["partition"] = choose(record, number)
            sender.send(args.topic, on_delivery=deliveries, **fields)
            if number == 1:
                warn_if_missing(producer, args.topic)
            if args.sync:
                flush_all(producer, stop)
                if deliveries.failed:
                    return 1
    finally:
        # What was sent before the end, or before an unreadable line, still goes out.
        left = flush_all(producer, stop)
    if deliveries.failed or left:
        deliveries.say_sum(left)
        return 1
    return EXIT_INTERRUPTED if stop else 0


def _records(
    reader: LineReader | OwnReader, source: IO[bytes], stop: StopRequest
) -> Iterator[tuple[int, ParsedLine | OwnLine]]:
    if isinstance(reader, OwnReader) and reader.reads_stream:
        yield from enumerate(reader.records(source), start=1)
        return
    for number, line in enumerate(lines(source, lambda: stop, prompt=is_typed(sys.stdin.buffer)), start=1):
        record = reader.parse(line, number)
        if record is not None:
            yield number, record


def _fields(record: ParsedLine | OwnLine) -> dict[str, Any]:
    fields: dict[str, Any] = {"key": record.key, "value": record.value, "headers": record.headers or None}
    if isinstance(record, OwnLine):
        said = {"partition": record.partition, "timestamp": record.timestamp}
        fields |= {name: value for name, value in said.items() if value is not None}
    return fields
