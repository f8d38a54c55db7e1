"""Lines to records, with Kafka's line reader properties."""

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.data.console_reader import LineReader, UnreadableLine, check_reader_class

BOTH = {"parse.key": "true", "parse.headers": "true"}


def test_a_line_is_a_value() -> None:
    assert LineReader({}).parse("a\tb", 1) == (None, b"a\tb", [])


def test_headers_key_and_value() -> None:
    parsed = LineReader(BOTH).parse("h1:v1,h2:v:2\tkey\tvalue\tmore", 1)
    assert parsed == (b"key", b"value\tmore", [("h1", b"v1"), ("h2", b"v:2")])


def test_own_separators() -> None:
    properties = BOTH | {
        "key.separator": "=", "headers.delimiter": "|", "headers.separator": ";", "headers.key.separator": "~",
    }  # fmt: skip
    assert LineReader(properties).parse("a~1;b~2|k=v", 1) == (b"k", b"v", [("a", b"1"), ("b", b"2")])


def test_null_marker() -> None:
    reader = LineReader(BOTH | {"null.marker": "NULL"})
    assert reader.parse("h:NULL\tNULL\tNULL", 1) == (None, None, [("h", None)])
    assert reader.parse("NULL\tk\tv", 1) == (b"k", b"v", [])
    with pytest.raises(UnreadableLine, match="cannot be null"):
        reader.parse("NULL:x\tk\tv", 1)


def test_a_line_without_separators_is_an_error_unless_ignored() -> None:
    with pytest.raises(UnreadableLine, match="no key separator found on line number 4: 'word'"):
        LineReader({"parse.key": "true"}).parse("word", 4)
    with pytest.raises(UnreadableLine, match="no header key separator"):
        LineReader(BOTH).parse("h\tk\tv", 1)
    lenient = LineReader(BOTH | {"ignore.error": "true"})
    assert lenient.parse("word", 1) == (None, b"word", [])
    assert lenient.parse("h\tk\tv", 1) == (b"k", b"v", [("h", None)])


def test_bytes_that_are_no_text_survive() -> None:
    line = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert LineReader({}).parse(line, 1).value == b"\xff\xfe"


@pytest.mark.parametrize(
    "properties",
    [
        {"headers.delimiter": ","},
        {"headers.separator": ":"},
        {"null.marker": "\t"},
        {"key.separator": "x", "null.marker": "x"},
        {"key.separator": ""},
        {"headers.separator": "("},
        {"parse.keys": "true"},
    ],
)
def test_properties_that_cannot_work(properties: dict[str, str]) -> None:
    with pytest.raises(CommandError):
        LineReader(properties)


def test_reader_classes() -> None:
    check_reader_class("org.apache.kafka.tools.LineMessageReader")
    check_reader_class("kafka.tools.ConsoleProducer$LineMessageReader")
    with pytest.raises(CommandError, match="there is no line reader"):
        check_reader_class("com.acme.Reader")
