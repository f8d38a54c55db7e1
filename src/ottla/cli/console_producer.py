"""`console-producer`: lines of standard input become records of a topic."""

import argparse
import select
import sys
from collections.abc import Iterator, Sequence
from typing import IO

from confluent_kafka import KafkaError, Message, Producer

from ottla.cli.client_properties import load_properties, producer_settings
from ottla.cli.console_reader import LineReader, check_reader_class
from ottla.cli.kafka_clients import (
    EXIT_INTERRUPTED,
    POLL_S,
    BlockingSender,
    StopRequest,
    flush_all,
    in_words,
    open_producer,
    sigterm_as_interrupt,
)
from ottla.cli.options import ToolParser, add_connection_options, bootstrap_of, parse_pairs, read_properties
from ottla.cli.output import complain

EXAMPLES = """\
  echo hello | ottla console-producer --topic news
  ottla console-producer --topic news --reader-property parse.key=true --reader-property key.separator=:
  printf 'source:web\\tcarol\\t7\\n' | ottla console-producer --topic scores \\
      --reader-property parse.headers=true --reader-property parse.key=true
  ottla console-producer --topic news --compression-codec zstd --request-required-acks 1 < lines.txt
  ottla console-producer --topic news --command-property linger.ms=5 --command-config client.properties

line reader properties (--reader-property, --property):
  parse.key=false         lines start with a key
  key.separator=\\t        what stands between key and value
  parse.headers=false     lines start with headers, before the key
  headers.delimiter=\\t    what stands after the headers
  headers.separator=,     what stands between two headers
  headers.key.separator=: what stands between a header's name and its value
  null.marker=            a key, value or header value that equals this is null
  ignore.error=false      take a line without the separators as a value
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


def main(argv: Sequence[str] | None = None, prog: str = "ottla console-producer") -> int:
    args = _parser(prog).parse(argv)
    check_reader_class(args.line_reader)
    reader = LineReader(_reader_properties(args))
    settings = producer_settings(producer_properties(args))
    producer, _reporter = open_producer(settings)
    with sigterm_as_interrupt():
        return _send_lines(producer, settings.max_block_s, reader, args)


def _parser(prog: str) -> ToolParser:
    parser = ToolParser(prog, "Sends each line of standard input to a topic as one record.", EXAMPLES)
    parser.add_argument("--topic", required=True, help="the topic to send to")
    parser.add_argument("--sync", action="store_true", help="wait for each record's acknowledgement before the next")
    parser.add_argument(
        "--compression-codec", nargs="?", const="gzip", metavar="CODEC",
        help="none, gzip, snappy, lz4 or zstd; without a value gzip (default: none)",
    )  # fmt: skip
    for option, setting, default, words in _PRODUCER_OPTIONS:
        parser.add_argument(f"--{option}", metavar="N", help=f"{words} ({setting}; default: {default})")
    parser.add_argument("--line-reader", default="org.apache.kafka.tools.LineMessageReader", metavar="CLASS",
                        help="how lines are read; there is org.apache.kafka.tools.LineMessageReader")  # fmt: skip
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


class _Deliveries:
    """Counts failures and says what failed; the run goes on, as with Kafka's tool."""

    def __init__(self) -> None:
        self.failed = 0

    def __call__(self, error: KafkaError | None, record: Message) -> None:
        if error is None:
            return
        self.failed += 1
        complain(f"a record for {record.topic()} (key {_shown(record.key())}) was not sent: {in_words(error)}")


def _shown(data: bytes | None) -> str:
    return "null" if data is None else f"'{data.decode(errors='replace')}'"


def _send_lines(producer: Producer, max_block_s: float, reader: LineReader, args: argparse.Namespace) -> int:
    deliveries = _Deliveries()
    sender = BlockingSender(producer, max_block_s)
    interrupted = False
    try:
        for number, line in enumerate(_lines(sys.stdin.buffer, producer), start=1):
            record = reader.parse(line, number)
            sender.send(
                args.topic, key=record.key, value=record.value, headers=record.headers or None, on_delivery=deliveries
            )
            if args.sync:
                flush_all(producer, StopRequest())
                if deliveries.failed:
                    return 1
    except KeyboardInterrupt:
        interrupted = True
    finally:
        # What was sent before the end, or before an unreadable line, still goes out.
        flush_all(producer, StopRequest())
    if deliveries.failed:
        complain(f"{deliveries.failed} records were not sent")
        return 1
    return EXIT_INTERRUPTED if interrupted else 0


def _lines(source: IO[bytes], producer: Producer) -> Iterator[str]:
    """Lines without their ends. Bytes that are no UTF-8 survive as they are."""
    interactive = source.isatty()
    prompt = interactive and sys.stdout.isatty()
    while True:
        if prompt:
            print(">", end="", flush=True)
        while interactive and not select.select([source], [], [], POLL_S)[0]:
            producer.poll(0)  # while a person thinks, say what became of the records sent so far
        line = source.readline()
        if not line:
            return
        yield line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")
