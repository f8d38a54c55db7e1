"""A producer's settings: what they become, and what is refused with which words."""

import pytest

from ottla.client.errors import InvalidSetting
from ottla.client.producer import ALL, ProducerLimits
from ottla.client.producer_settings import (
    BATCH_BYTES,
    PRODUCER_SETTINGS,
    TRANSACTION_TIMEOUT_MS,
    Compression,
    ProducerSettings,
    producer_settings,
)
from ottla.protocol.compression import Codec

SERVERS = {"bootstrap.servers": "h:1"}


def parse(**settings: str) -> ProducerSettings:
    return producer_settings(SERVERS | {name.replace("_", "."): value for name, value in settings.items()})


def test_defaults() -> None:
    settings = parse()
    assert settings.limits == ProducerLimits()
    assert settings.limits.acks == ALL
    assert settings.is_idempotent
    assert settings.compression == Compression(Codec.NONE, None)
    assert (settings.batch_bytes, settings.transaction_timeout_ms) == (BATCH_BYTES, TRANSACTION_TIMEOUT_MS)
    assert settings.transactional_id is None


def test_every_setting_has_its_effect() -> None:
    settings = parse(
        acks="1", batch_size="100", buffer_memory="200", compression_type="gzip", compression_gzip_level="9",
        delivery_timeout_ms="3000", max_request_size="400", transaction_timeout_ms="500", transactional_id="x",
        request_timeout_ms="6000", max_in_flight_requests_per_connection="7", enable_idempotence="false",
    )  # fmt: skip
    assert settings.limits == ProducerLimits(1, 400, 200, 6.0, 3.0, 7)
    assert settings.compression == Compression(Codec.GZIP, 9)
    assert (settings.batch_bytes, settings.transaction_timeout_ms) == (100, 500)
    assert settings.transactional_id == "x"
    assert not settings.is_idempotent


def test_other_names_of_librdkafka() -> None:
    settings = parse(request_required_acks="0", compression_codec="zstd", compression_level="19")
    assert settings.limits.acks == 0
    assert settings.compression == Compression(Codec.ZSTD, 19)


@pytest.mark.parametrize(("text", "acks"), [("all", ALL), ("-1", ALL), ("1", 1), ("0", 0)])
def test_acks(text: str, acks: int) -> None:
    settings = parse(acks=text)
    assert settings.limits.acks == acks
    assert settings.is_idempotent == (acks == ALL)


def test_a_batch_is_no_larger_than_a_request() -> None:
    assert parse(batch_size="2000", max_request_size="1000").batch_bytes == 1000


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("acks", "2", "acks is all, 1 or 0, not `2`"),
        ("compression.type", "brotli", "one of none, gzip, snappy, lz4 and zstd, not `brotli`"),
        ("compression.zstd.level", "3", "has no effect with compression.type=none"),
        ("batch.size", "big", "whole number"),
        ("batch.size", "0", "between 1 and"),
        ("linger.ms", "5", "nothing to linger for"),
        ("retries", "3", "delivery.timeout.ms"),
        ("partitioner.class", "X", "fill the column"),
        ("key.serializer", "X", "cast the column"),
        ("max.in.flight.requests.per.connection", "6", "is 5 at most"),
        ("batch.sise", "1", "did you mean batch.size"),
        ("group.id", "g", "not a client setting that is known here"),
    ],
)
def test_refusals(name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        producer_settings(SERVERS | {name: value})


@pytest.mark.parametrize(
    ("codec", "name", "value", "words"),
    [
        ("gzip", "compression.gzip.level", "10", "between -1 and 9"),
        ("lz4", "compression.lz4.level", "0", "between 1 and 17"),
        ("lz4", "compression.lz4.level", "fast", "whole number"),
        ("lz4", "compression.gzip.level", "1", "no effect with compression.type=lz4"),
        ("snappy", "compression.level", "1", "no effect with compression.type=snappy"),
    ],
)
def test_levels_fit_their_codec(codec: str, name: str, value: str, words: str) -> None:
    with pytest.raises(InvalidSetting, match=words):
        producer_settings(SERVERS | {"compression.type": codec, name: value})


def test_idempotence_and_fewer_acks_contradict_each_other() -> None:
    with pytest.raises(InvalidSetting, match=r"enable\.idempotence wants acks=all"):
        parse(acks="1", enable_idempotence="true")


def test_messages_name_settings_as_the_user_wrote_them() -> None:
    with pytest.raises(InvalidSetting, match=r"kafka\.linger\.ms has no effect here"):
        producer_settings(SERVERS | {"linger.ms": "1"}, prefix="kafka.")


def test_every_known_setting_is_tried_here() -> None:
    assert len(PRODUCER_SETTINGS) == 16, "a new setting wants a test of its effect"
