"""Topics that check schemas: what carries no id of its subject is refused, by name, and its batch with it."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from tests.one_batch import send_as_one_batch

from ottla.broker.handlers.producing.schema_ids import SchemaIds
from ottla.broker.storage.append_rules import SchemaCheck
from ottla.broker.storage.record_errors import InvalidRecords
from ottla.model.errors import ApiError
from ottla.protocol.compression import Codec
from ottla.protocol.records import NewRecord, encode_batch
from ottla.registry.client import RegistryClient
from ottla.registry.framing import VALUE_HEADER, guid_header, id_prefix
from ottla.testing.ports import free_ports
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker, broker

VALUE = SchemaCheck("value", "TopicNameStrategy")


@pytest.fixture(scope="module")
def world() -> Iterator[tuple[RunningBroker, RunningRegistry]]:
    (port,) = free_ports(1)
    with (
        broker({"confluent.schema.registry.url": f"http://127.0.0.1:{port}"}) as running,
        registry(running.bootstrap, "--listen", f"127.0.0.1:{port}") as beside,
    ):
        yield running, beside


@pytest.fixture(scope="module")
def ids(world: tuple[RunningBroker, RunningRegistry]) -> Iterator[dict[str, Any]]:
    running, beside = world
    with RegistryClient(beside.url) as client:
        good = client.register("orders-value", '"string"')
        other = client.register("others-value", '"bytes"')
        yield {"good": good.schema_id, "other": other.schema_id, "guid": good.guid}
    del running


@pytest.fixture(scope="module")
def topic(world: tuple[RunningBroker, RunningRegistry]) -> str:
    admin = AdminClient({"bootstrap.servers": world[0].bootstrap})
    config = {"confluent.value.schema.validation": "true"}
    made = admin.create_topics([NewTopic("orders", 1, config=config), NewTopic("free", 1)])
    for future in made.values():
        future.result(30)
    return "orders"


def sent(
    bootstrap: str, topic: str, *values: bytes | None, codec: str = "none", **more: Any
) -> list[KafkaError | None]:
    """What became of each, all in one batch."""
    records = [{"topic": topic, "value": value, **more} for value in values]
    return send_as_one_batch({"bootstrap.servers": bootstrap, "compression.type": codec}, records)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_good_records_are_taken_and_bad_ones_named(
    world: tuple[RunningBroker, RunningRegistry], topic: str, ids: dict[str, Any], codec: str
) -> None:
    good = id_prefix(ids["good"]) + b"\x06tea"
    assert sent(world[0].bootstrap, topic, good, good, None, codec=codec) == [None, None, None]
    first, second = sent(world[0].bootstrap, topic, good, b"plain text", codec=codec)
    assert first is not None
    assert second is not None
    assert second.code() == KafkaError.INVALID_RECORD
    for value in (id_prefix(ids["other"]) + b"x", id_prefix(4711) + b"x"):
        (error,) = sent(world[0].bootstrap, topic, value, codec=codec)
        assert error is not None
        assert error.code() == KafkaError.INVALID_RECORD


def test_a_guid_in_a_header(world: tuple[RunningBroker, RunningRegistry], topic: str, ids: dict[str, Any]) -> None:
    headers = [(VALUE_HEADER, guid_header(ids["guid"]))]
    assert sent(world[0].bootstrap, topic, b"bare", headers=headers) == [None]
    assert sent(world[0].bootstrap, "free", b"plain text") == [None], "others take what they get"


def test_the_reasons(world: tuple[RunningBroker, RunningRegistry], ids: dict[str, Any]) -> None:
    checking = SchemaIds(world[1].url)
    good, wrong = id_prefix(ids["good"]) + b"x", id_prefix(ids["other"]) + b"x"
    batch = encode_batch([NewRecord(None, value, 0) for value in (good, b"?", wrong, None)], codec=Codec.ZSTD)
    with pytest.raises(InvalidRecords) as caught:
        checking.check(batch, "orders", (VALUE,))
    assert [error.batch_index for error in caught.value.record_errors] == [1, 2]
    assert "value: it has no schema id" in str(caught.value)
    assert f"schema id {ids['other']} is none of subject orders-value" in str(caught.value)
    # One that was good says nothing of others in its batch: empty, cut short, or with a header of its own.
    mixed = [NewRecord(None, value, 0) for value in (b"", good, good, b"", good[:4], wrong, good)]
    mixed.append(NewRecord(None, good, 0, [(VALUE_HEADER, id_prefix(ids["other"]))]))
    both = (SchemaCheck("key", "TopicNameStrategy"), VALUE)
    with pytest.raises(InvalidRecords) as caught:
        checking.check(encode_batch(mixed), "orders", both)
    assert [error.batch_index for error in caught.value.record_errors] == [0, 3, 4, 5, 7]
    any_subject = encode_batch([NewRecord(wrong, wrong, 0)])
    checking.check(any_subject, "orders", (SchemaCheck("key", "RecordNameStrategy"),))
    with pytest.raises(InvalidRecords, match="of no subject of topic orders"):
        checking.check(any_subject, "orders", (SchemaCheck("key", "TopicRecordNameStrategy"),))
    checking.close()


def test_without_a_registry_it_is_said() -> None:
    batch = encode_batch([NewRecord(None, id_prefix(1) + b"x", 0)])
    with pytest.raises(ApiError, match=r"set confluent\.schema\.registry\.url"):
        SchemaIds().check(batch, "orders", (VALUE,))
    with pytest.raises(ApiError, match="cannot be asked"):
        SchemaIds("http://127.0.0.1:9").check(batch, "orders", (VALUE,))
