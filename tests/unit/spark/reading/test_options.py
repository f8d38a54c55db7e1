"""The options of a read: what they become, and in which words the wrong ones are refused."""

import pytest

from ottla.model.names import TopicPartition
from ottla.spark.errors import InvalidOption
from ottla.spark.reading.options import Bound, BoundKind, ReadOptions, Subscription, parse_read_options

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def stream(**options: str) -> ReadOptions:
    return parse_read_options({**BROKER, "subscribe": "a", **options}, streaming=True)


def batch(**options: str) -> ReadOptions:
    return parse_read_options({**BROKER, "subscribe": "a", **options}, streaming=False)


def test_what_a_stream_does_unless_told_otherwise() -> None:
    found = stream()
    assert found.starting == Bound(BoundKind.LATEST, "startingOffsets")
    assert found.fail_on_data_loss
    assert not found.include_headers
    assert found.consumer.fetch.committed
    assert found.consumer.check_crcs
    assert (found.rows_max, found.rows_min, found.parts_min, found.group) == (None, None, None, None)
    assert found.trigger_delay_ms_max == 15 * 60 * 1000


def test_what_a_batch_does_unless_told_otherwise() -> None:
    found = batch()
    assert found.starting == Bound(BoundKind.EARLIEST, "startingOffsets")
    assert found.ending == Bound(BoundKind.LATEST, "endingOffsets", latest_if_none=True)


def test_names_are_read_whatever_their_case() -> None:
    found = stream(MAXOFFSETSPERTRIGGER="5", minpartitions="3", IncludeHeaders="TRUE", FAILondataloss="false")
    assert (found.rows_max, found.parts_min, found.include_headers, found.fail_on_data_loss) == (5, 3, True, False)


def test_subscriptions() -> None:
    assert stream(subscribe=" a , b,a ").subscription == Subscription(topics=("a", "b"))
    by_pattern = parse_read_options({**BROKER, "subscribePattern": "a.*"}, streaming=True)
    assert by_pattern.subscription == Subscription(pattern="a.*")
    by_hand = parse_read_options({**BROKER, "assign": '{"a":[1,0]}'}, streaming=True)
    assert by_hand.subscription == Subscription(partitions=(A0, A1))


def test_bounds() -> None:
    assert stream(startingOffsets="Earliest").starting.kind is BoundKind.EARLIEST
    assert stream(startingOffsets="group", groupId="g").starting.kind is BoundKind.GROUP
    assert stream(startingOffsets='{"a":{"0":4,"1":-1}}').starting.offsets == {A0: 4, A1: -1}
    assert batch(endingOffsets='{"a":{"0":4,"1":-1}}').ending.offsets == {A0: 4, A1: -1}
    timestamps = batch(endingOffsetsByTimestamp='{"a":{"0":1000}}').ending
    assert (timestamps.kind, timestamps.offsets) == (BoundKind.TIMESTAMPS, {A0: 1000})


def test_the_most_particular_bound_wins() -> None:
    given = {"startingTimestamp": "5", "startingOffsetsByTimestamp": '{"a":{"0":6}}', "startingOffsets": "latest"}
    assert stream(**given).starting == Bound(BoundKind.TIMESTAMP, "startingTimestamp", timestamp_ms=5)
    del given["startingTimestamp"]
    assert stream(**given).starting == Bound(BoundKind.TIMESTAMPS, "startingOffsetsByTimestamp", {A0: 6})


def test_the_strategy_of_timestamps() -> None:
    assert not stream(startingTimestamp="5").starting.latest_if_none
    assert stream(startingTimestamp="5", startingOffsetsByTimestampStrategy="latest").starting.latest_if_none
    assert batch(endingTimestamp="5").ending.latest_if_none


@pytest.mark.parametrize(
    ("text", "ms"),
    [("250", 250), ("250ms", 250), ("3s", 3_000), ("2m", 120_000), ("2 min", 120_000), ("1h", 3_600_000)],
)
def test_delays(text: str, ms: int) -> None:
    assert stream(minOffsetsPerTrigger="5", maxTriggerDelay=text).trigger_delay_ms_max == ms


def test_settings_of_the_client_take_effect() -> None:
    found = stream(
        **{
            "kafka.client.id": "me",
            "kafka.client.rack": "west",
            "kafka.isolation.level": "read_uncommitted",
            "kafka.check.crcs": "false",
            "kafka.fetch.max.bytes": "1000",
            "kafka.max.partition.fetch.bytes": "900",
            "kafka.fetch.min.bytes": "10",
            "kafka.fetch.max.wait.ms": "20",
            "kafka.request.timeout.ms": "1500",
            "kafka.default.api.timeout.ms": "2500",
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "u",
            "kafka.sasl.password": "p",
            "kafkaConsumer.pollTimeoutMs": "5000",
        }
    ).consumer
    assert found.client.client_id == "me"
    assert (found.client.request_timeout_s, found.client.total_timeout_s) == (1.5, 2.5)
    assert found.client.security.sasl is not None
    assert found.fetch == (False, 1000, 900, 10, 20, "west", 5.0)
    assert not found.check_crcs


def test_groups() -> None:
    assert stream(groupId="g").group == "g"
    assert stream(**{"kafka.group.id": "g"}).group == "g"
    assert stream(**{"kafka.group.id": "g", "groupId": "g"}).group == "g"
    generated = stream(groupIdPrefix="mine")
    assert (generated.group, generated.group_prefix) == (None, "mine")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subscribePattern": "a"}, "exactly one of subscribe, subscribePattern and assign, not subscribe and"),
        ({"subscribe": " "}, "subscribe is empty"),
        ({"subscribe": "a/b"}, "may only use letters"),
        ({"startingOffset": "latest"}, "startingoffset is not known for reading: did you mean startingOffsets?"),
        ({"colour": "blue"}, "colour is not known for reading: there are assign, subscribe"),
        ({"path": "orders"}, "load() takes no argument, use the option subscribe"),
        ({"fetchOffset.numRetries": "3"}, "set kafka.default.api.timeout.ms"),
        ({"endingOffsets": "latest"}, "endingOffsets is for batch queries: a stream has no end"),
        ({"startingOffsets": "newest"}, "startingOffsets wants JSON"),
        ({"startingOffsets": '{"a":{"0":-3}}'}, "an offset is at least 0, or -1 for latest, or -2 for earliest"),
        ({"startingOffsets": "group"}, "name it with the option groupId"),
        ({"startingTimestamp": "-1"}, "startingTimestamp is at least 0"),
        ({"startingOffsetsByTimestamp": '{"a":{"0":-1}}'}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "latest"}, "belongs to startingTimestamp"),
        ({"startingTimestamp": "1", "startingOffsetsByTimestampStrategy": "first"}, "is error or latest"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is at least 1"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger is a whole number"),
        ({"maxOffsetsPerTrigger": "1", "minOffsetsPerTrigger": "2"}, "is more than maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "1s"}, "minOffsetsPerTrigger, which is missing"),
        ({"minOffsetsPerTrigger": "1", "maxTriggerDelay": "soon"}, "such as 500ms, 30s, 15m or 1h"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss is true or false"),
        ({"groupId": "g", "kafka.group.id": "h"}, "name two groups"),
        ({"groupId": "g", "groupIdPrefix": "h"}, "keep one of them"),
        ({"groupId": ""}, "groupId is empty"),
        ({"kafka.auto.offset.reset": "latest"}, "use the option startingOffsets"),
        ({"kafka.enable.auto.commit": "true"}, "offsets belong to the checkpoint"),
        ({"kafka.key.deserializer": "X"}, "keys always come as bytes"),
        ({"kafka.value.deserializer": "X"}, "values always come as bytes"),
        ({"kafka.session.timeout.ms": "1"}, "has no effect here and should be taken out: a query is no member"),
        ({"kafka.fetch.max.byte": "1"}, "did you mean kafka.fetch.max.bytes?"),
        ({"kafka.isolation.level": "none"}, "is read_committed or read_uncommitted"),
        ({"kafka.fetch.max.bytes": "0"}, "lies between 1 and"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": ":::"}, "is not an address"),
    ],
)
def test_a_stream_refuses_in_words(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        stream(**options)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, "cannot be latest in a batch query"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "cannot be latest in a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": "group"}, "not `group`"),
        ({"maxOffsetsPerTrigger": "5"}, "maxOffsetsPerTrigger is for streaming queries"),
        ({"groupId": "g"}, "groupId is for streaming queries"),
        ({"kafka.group.id": "g"}, "kafka.group.id is for streaming queries"),
    ],
)
def test_a_batch_refuses_in_words(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        batch(**options)
    assert words in str(caught.value)
