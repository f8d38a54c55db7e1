"""Metrics that clients push: what is answered to whom, and what is told of it."""

import contextlib
import struct
import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.compression import Codec, compress
from ottla.telemetry.otlp import BadMetrics, decode
from ottla.telemetry.prometheus import render
from ottla.telemetry.pushed import NO_INSTANCE, ClientMetrics, read_points
from ottla.telemetry.subscriptions import BadSubscription, parse, wanted_of

ME = {"client_id": "billing-1", "client_software_name": "librdkafka", "client_source_address": "10.0.0.1"}


def field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(body)) + body


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def attribute(key: str, value: str) -> bytes:
    return field(1, key.encode()) + field(2, field(1, value.encode()))


def counter(name: str, value: int, **attributes: str) -> bytes:
    point = b"".join(field(7, attribute(*each)) for each in attributes.items()) + b"\x31" + struct.pack("<q", value)
    body = field(1, point) + bytes([2 << 3, 1, 3 << 3, 1])
    return field(2, field(1, name.encode()) + field(7, body))


def gauge(name: str, value: float) -> bytes:
    return field(2, field(1, name.encode()) + field(3, b"ms") + field(5, field(1, b"\x21" + struct.pack("<d", value))))


def message(*metrics: bytes) -> bytes:
    return field(1, field(2, b"".join(metrics)))


def clients(series_max: int = 100, **configs: Mapping[str, str]) -> ClientMetrics:
    made = ClientMetrics(lambda: series_max, lambda: 1000, lambda: uuid.UUID(int=7))
    made.use(configs or {"all": {"metrics": "*", "interval.ms": "1000"}})
    return made


def refused(code: ErrorCode, *arguments: object, on: ClientMetrics, **more: bool) -> None:
    with pytest.raises(ApiError) as error:
        on.check(*arguments, **more)  # type: ignore[arg-type]
    assert error.value.code is code


def test_figures_are_read() -> None:
    data = message(counter("org.apache.kafka.a.total", 5, node="1"), gauge("org.apache.kafka.b", 2.5))
    first, second = decode(data)
    assert (first.name, first.value, first.is_delta, first.is_counter) == ("org.apache.kafka.a.total", 5, True, True)
    assert first.attributes == (("node", "1"),)
    assert (second.name, second.value, second.unit, second.is_delta) == ("org.apache.kafka.b", 2.5, "ms", False)


@given(st.binary(max_size=200))
def test_nonsense_is_refused_or_has_no_figures(data: bytes) -> None:
    with contextlib.suppress(BadMetrics):
        list(decode(data))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_every_codec_that_is_offered_is_read(codec: Codec) -> None:
    data = message(gauge("a", 1.0))
    assert [point.value for point in read_points(codec, bytes(compress(codec, data)))] == [1.0]


def test_a_small_push_that_becomes_huge_is_refused() -> None:
    bomb = bytes(compress(Codec.ZSTD, bytes(50_000_000)))
    with pytest.raises(ApiError) as error:
        read_points(Codec.ZSTD, bomb)
    assert error.value.code is ErrorCode.INVALID_RECORD


def test_a_client_asks_pushes_and_is_told() -> None:
    metrics = clients()
    instance, wanted = metrics.subscribe(NO_INSTANCE, ME, 0)
    assert (wanted.metrics, wanted.interval_ms) == (("*",), 1000)
    for number, now_ms in enumerate((10, 1010)):
        data = message(counter("org.apache.kafka.producer.sent.total", 5, **{"node.id": "1"}), gauge("other", number))
        metrics.check(instance, ME, wanted.id, 0, len(data), now_ms)
        metrics.take(instance, read_points(0, data))
    text = render(metrics.tables())
    label = f'client_id="billing-1",client_instance_id="{instance}",client_software_name="librdkafka"'
    assert f'ottla_client_producer_sent_total{{{label},client_software_version="",node_id="1"}} 10' in text, (
        "deltas add up"
    )
    assert f'ottla_client_other{{{label},client_software_version=""}} 1.0' in text
    assert (metrics.taken, len(metrics)) == (2, 1)


def test_what_is_wrong_is_answered_as_kafka_does() -> None:
    metrics = clients()
    refused(ErrorCode.INVALID_REQUEST, NO_INSTANCE, ME, 1, 0, 10, 0, on=metrics)
    instance, wanted = metrics.subscribe(NO_INSTANCE, ME, 0)
    with pytest.raises(ApiError) as error:
        metrics.subscribe(instance, ME, 500)
    assert error.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, instance, ME, wanted.id + 1, 0, 10, 600, on=metrics)
    assert metrics.subscribe(instance, ME, 700)[1] == wanted, "who was told to ask again may"
    metrics.check(instance, ME, wanted.id, 0, 10, 800)
    refused(ErrorCode.THROTTLING_QUOTA_EXCEEDED, instance, ME, wanted.id, 0, 10, 900, on=metrics)
    refused(ErrorCode.TELEMETRY_TOO_LARGE, instance, ME, wanted.id, 0, 1001, 1900, on=metrics)
    refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, instance, ME, wanted.id, 9, 10, 3000, on=metrics)
    metrics.subscribe(instance, ME, 3001)
    metrics.check(instance, ME, wanted.id, 0, 0, 3002, terminating=True)
    refused(ErrorCode.INVALID_REQUEST, instance, ME, wanted.id, 0, 10, 3002, on=metrics)
    assert (metrics.throttled, metrics.unknown) == (2, 1)


def test_a_changed_subscription_has_another_id_and_may_be_asked_for_at_once() -> None:
    metrics = clients()
    instance, wanted = metrics.subscribe(NO_INSTANCE, ME, 0)
    metrics.use({"one": {"metrics": "org.apache.kafka.producer.", "interval.ms": "5000"}})
    refused(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, instance, ME, wanted.id, 0, 10, 10, on=metrics)
    _, after = metrics.subscribe(instance, ME, 20)
    assert (after.metrics, after.interval_ms) == (("org.apache.kafka.producer.",), 5000)


def test_series_are_bounded_and_those_of_silent_clients_go() -> None:
    metrics = clients(series_max=2)
    instance, wanted = metrics.subscribe(NO_INSTANCE, ME, 0)
    metrics.check(instance, ME, wanted.id, 0, 0, 1)
    metrics.take(instance, list(decode(message(*(gauge(f"g{number}", 1.0) for number in range(5))))))
    assert metrics.dropped == 3
    assert len(list(metrics.tables())) == 2
    metrics.expire(3001)
    assert len(metrics) == 1
    metrics.expire(3002)
    assert (len(metrics), list(metrics.tables())) == (0, [])


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        ({"interval.ms": "99"}, "between 100 and 3600000"),
        ({"interval.ms": "x"}, "between"),
        ({"match": "client_id"}, "Illegal client matching pattern"),
        ({"match": "shoe_size=1"}, "Illegal client matching pattern"),
        ({"match": "client_id=("}, "Illegal client matching pattern"),
        ({"metric": "a"}, "Unknown client metrics configuration"),
    ],
)
def test_subscriptions_that_cannot_be(configs: Mapping[str, str], told: str) -> None:
    with pytest.raises(BadSubscription, match=told):
        parse(configs)


def test_a_client_pushes_what_all_that_are_for_it_want_at_the_shortest_interval() -> None:
    known = {
        "a": parse({"metrics": "x.,y.", "interval.ms": "2000", "match": "client_id=billing-.*"}),
        "b": parse({"metrics": "z.", "interval.ms": "500", "match": "client_source_address=10\\..*"}),
        "c": parse({"metrics": "*", "match": "client_id=other"}),
    }
    wanted = wanted_of(ME, known)
    assert (wanted.metrics, wanted.interval_ms) == (("x.", "y.", "z."), 500)
    assert wanted_of({"client_id": "nobody"}, known).metrics == ()
