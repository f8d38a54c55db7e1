"""The codec on bytes that nobody meant well, and the generated files against their generator."""

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol import codec, varint
from ottla.protocol.apis import API
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, RequestCursor
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

ROOT = Path(__file__).parents[3]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_messages", ROOT / "tools/generate_messages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_messages_are_current() -> None:
    generator = load_generator()
    for name, text in generator.generate().items():
        assert (generator.TARGET / name).read_text() == text, f"run tools/generate_messages.py: {name} is stale"


def test_fields_absent_from_a_version_keep_their_defaults() -> None:
    request = FetchRequest(
        rack_id="r", topics=[FetchTopic(topic="t", topic_id=UUID(int=7), partitions=[FetchPartition(partition=3)])]
    )
    old = codec.decode(FetchRequest, 4, codec.encode(request, 4))
    assert (old.rack_id, old.topics[0].topic, old.topics[0].topic_id) == ("", "t", UUID(int=0))
    new = codec.decode(FetchRequest, 13, codec.encode(request, 13))
    assert (new.rack_id, new.topics[0].topic, new.topics[0].topic_id) == ("r", "", UUID(int=7))


def test_a_nested_message_may_be_null() -> None:
    for cursor in (None, RequestCursor(topic_name="t", partition_index=4)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert codec.decode(DescribeTopicPartitionsRequest, 0, codec.encode(request, 0)).cursor == cursor


def test_an_array_larger_than_the_message_is_refused_before_it_is_allocated() -> None:
    with pytest.raises(MalformedMessage):
        codec.decode(FetchRequest, 4, b"\x00" * 17 + b"\x7f\xff\xff\xff")


@pytest.mark.parametrize("spec", API.values(), ids=lambda spec: spec.name)
def test_garbage_is_malformed_and_nothing_else(spec: object) -> None:
    assert hasattr(spec, "request_class")
    rng = random.Random(5)
    message = spec.request_class
    for version in range(message.MIN_VERSION, message.MAX_VERSION + 1):
        good = bytes(codec.encode(message(), version))
        for _ in range(30):
            bad = bytearray(good[: rng.randrange(len(good) + 1)] + rng.randbytes(rng.randrange(12)))
            if bad:
                bad[rng.randrange(len(bad))] = rng.randrange(256)
            try:
                codec.decode(message, version, bad)
            except MalformedMessage:
                continue


@given(st.integers(0, 2**63 - 1))
def test_varints_come_back(value: int) -> None:
    assert varint.read_unsigned(varint.unsigned(value), 0)[0] == value
    assert varint.read_signed(varint.signed(value), 0)[0] == value
    assert varint.read_signed(varint.signed(-value), 0)[0] == -value


def test_an_endless_varint_is_refused() -> None:
    with pytest.raises(MalformedMessage):
        varint.read_unsigned(b"\xff" * 30, 0)
