"""Python in place of Java classes: found, called, and told on when it fails."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.common.output import CommandError
from ottla.cli.data.client_properties import producer_settings
from ottla.cli.data.console_reader import UnreadableLine, check_reader_class
from ottla.cli.data.deserializers import deserializer
from ottla.cli.data.formatters import make_formatter
from ottla.cli.data.own_code import OwnCodeFailed, OwnLine, OwnPartitioner, OwnReader, load

Module = Callable[[str], str]
_count = iter(range(1000))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Writes a module in the current folder, which is not in Python's path; its name comes back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # the folder of a test must not stay there

    def write(text: str) -> str:
        name = f"mine_{next(_count)}"
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


class FakeRecord:
    """As much of confluent_kafka's Message as a formatter looks at."""

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return 42

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None


def formatted(reference: str, **properties: str) -> bytes:
    out = io.BytesIO()
    record: Any = FakeRecord()
    make_formatter(reference, properties).write(record, out)
    return out.getvalue()


def test_functions_decode(module: Module) -> None:
    mine = module("def text(data): return data.decode()[::-1]\ndef number(data): return len(data)\n")
    assert deserializer(f"{mine}:text", {})(b"abc") == b"cba"
    assert deserializer(f"{mine}:number", {})(b"abc") == b"3"


def test_a_class_gets_its_properties(module: Module) -> None:
    mine = module(
        "class D:\n"
        "  def __init__(self, properties): self.mark = properties['mark']\n"
        "  def deserialize(self, data): return self.mark + data.decode()\n"
    )
    properties = {"value.deserializer": f"{mine}:D", "value.deserializer.mark": ">"}
    assert formatted("DefaultMessageFormatter", **properties) == b">v\n"


def test_formatters(module: Module) -> None:
    mine = module(
        "def line(r):\n"
        "  return f'{r.topic} {r.partition} {r.offset} {r.timestamp_type} {r.timestamp} {r.key} {r.headers}'\n"
        "def none(r): return None\n"
        "class F:\n"
        "  def __init__(self, properties): self.end = properties['end'].encode()\n"
        "  def write(self, record, out): out.write(record.value + self.end)\n"
    )
    assert formatted(f"{mine}:line") == b"t 1 42 CreateTime 1000 b'k' []\n"
    assert formatted(f"{mine}:none") == b""
    assert formatted(f"{mine}:F", end="!") == b"v!"


def test_readers(module: Module) -> None:
    mine = module(
        "def value(line): return line.upper()\n"
        "def pair(line): return line.split('=')\\\n  and tuple(line.split('='))\n"
        "def whole(line): return {'value': None, 'headers': {'h': 1}, 'partition': 3, 'timestamp': 5}\n"
        "def skip(line): return None\n"
        "class Blocks:\n"
        "  def __init__(self, properties): self.size = int(properties['size'])\n"
        "  def read_records(self, stream):\n"
        "    while block := stream.read(self.size): yield block\n"
    )
    assert OwnReader(f"{mine}:value", {}).parse("a", 1) == OwnLine(None, b"A", [])
    assert OwnReader(f"{mine}:pair", {}).parse("k=v", 1) == OwnLine(b"k", b"v", [])
    assert OwnReader(f"{mine}:whole", {}).parse("x", 1) == OwnLine(None, None, [("h", b"1")], 3, 5)
    assert OwnReader(f"{mine}:skip", {}).parse("x", 1) is None
    blocks = OwnReader(f"{mine}:Blocks", {"size": "2"})
    assert blocks.reads_stream
    assert [record.value for record in blocks.records(io.BytesIO(b"abcde"))] == [b"ab", b"cd", b"e"]


def test_partitioners(module: Module) -> None:
    mine = module(
        "def last(key, value, partitions): return partitions - 1\n"
        "def beyond(key, value, partitions): return partitions\n"
        "def fails(key, value, partitions): return key[0]\n"
    )
    assert OwnPartitioner(f"{mine}:last", {}).partition(None, b"v", 3, 1) == 2
    with pytest.raises(UnreadableLine, match=r"line number 7: .*beyond chose 3; the topic has the partitions 0 to 2"):
        OwnPartitioner(f"{mine}:beyond", {}).partition(None, b"v", 3, 7)
    with pytest.raises(UnreadableLine, match=r"line number 8: .*fails failed: TypeError: .*\.py, line 3\)"):
        OwnPartitioner(f"{mine}:fails", {}).partition(None, b"v", 3, 8)


def test_what_is_raised_is_told_with_its_line(module: Module) -> None:
    mine = module("def decode(data):\n    return 1 / 0\n")
    with pytest.raises(OwnCodeFailed, match=rf"{mine}:decode failed: ZeroDivisionError: .* \({mine}\.py, line 2\)"):
        deserializer(f"{mine}:decode", {})(b"")
    with pytest.raises(UnreadableLine, match=r"line number 9: .*ZeroDivisionError"):
        OwnReader(f"{mine}:decode", {}).parse("x", 9)


def test_a_pipe_that_breaks_is_not_the_formatters_mistake(module: Module) -> None:
    mine = module("class F:\n  def __init__(self, p): pass\n  def write(self, record, out): raise BrokenPipeError\n")
    with pytest.raises(BrokenPipeError):
        formatted(f"{mine}:F")


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("", "no_such_module:f", "there is no module `no_such_module`, neither in"),
        ("import no_such_thing", "{}:f", "cannot be imported: ModuleNotFoundError: No module named 'no_such_thing'"),
        ("x = 1 / 0", "{}:f", "cannot be imported: ZeroDivisionError"),
        ("def decode(data): pass", "{}:decod", "has no `decod`: did you mean `decode`?"),
        ("decode = 3", "{}:decode", "is a int, neither a function nor a class"),
        ("", "{}:", "is named module:function or module:Class"),
        ("class D:\n  pass", "{}:D", "cannot be made from its properties: TypeError"),
        ("class D:\n  def __init__(self, p): pass", "{}:D", "the class has no method `deserialize`"),
    ],
)
def test_what_cannot_be_used_is_told(module: Module, text: str, name: str, words: str) -> None:
    with pytest.raises(CommandError) as told:
        deserializer(name.format(module(text)), {}, "value.deserializer")
    assert words in str(told.value)
    assert str(told.value).startswith("value.deserializer=")


def test_java_classes_say_what_to_do() -> None:
    for use in (
        lambda: deserializer("com.example.MyDeserializer", {}),
        lambda: make_formatter("com.example.MyFormatter", {}),
        lambda: check_reader_class("com.example.MyReader"),
        lambda: producer_settings({"partitioner.class": "com.example.MyPartitioner"}),
    ):
        with pytest.raises(CommandError, match="module:function"):
            use()


def test_nested_names_are_found(module: Module) -> None:
    mine = module("class Codes:\n  @staticmethod\n  def first(data): return data[:1]\n")
    assert load(f"{mine}:Codes.first", "x")(b"ab") == b"a"
