"""Kafka's message formatters, given records directly."""

import io
import json
import struct
import uuid

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TIMESTAMP_NOT_AVAILABLE, Message

from ottla.cli.common.output import CommandError
from ottla.cli.data.deserializers import UndecodableRecord, deserializer, java_decimal
from ottla.cli.data.formatters import JsonFormatter, make_formatter
from ottla.model.names import TopicPartition
from ottla.protocol import coordinator_records as stored
from ottla.protocol.transaction_records import (
    TransactionState,
    TransactionValue,
    encode_transaction_key,
    encode_transaction_value,
)

DEFAULT = "kafka.tools.DefaultMessageFormatter"
_JAVA = "org.apache.kafka.common.serialization."


def record(**parts: object) -> Message:
    whole = {"topic": "t", "partition": 2, "offset": 7, "key": b"k", "value": b"v"} | parts
    whole.setdefault("timestamp", (TIMESTAMP_CREATE_TIME, 99))
    return Message(**whole)


def printed(name: str, message: Message, **properties: str) -> bytes:
    out = io.BytesIO()
    make_formatter(name, {key.replace("_", "."): value for key, value in properties.items()}).write(message, out)
    return out.getvalue()


def test_all_columns_in_kafkas_order() -> None:
    message = record(headers=[("h1", b"v1"), ("h2", None)], leader_epoch=3)
    columns = dict.fromkeys(
        ("print_timestamp", "print_key", "print_offset", "print_partition", "print_headers", "print_epoch"), "true"
    )
    assert (
        printed(DEFAULT, message, **columns) == b"CreateTime:99\tPartition:2\tOffset:7\tEpoch:3\th1:v1,h2:null\tk\tv\n"
    )


def test_separators_and_null_literal() -> None:
    message = record(key=None, headers=[("a", b"1"), ("b", b"2")])
    properties = {
        "print_key": "TRUE", "print_headers": "true", "key_separator": " - ", "line_separator": "|\n",
        "headers_separator": ";", "null_literal": "NIL",
    }  # fmt: skip
    assert printed(DEFAULT, message, **properties) == b"a:1;b:2 - NIL - v|\n"


def test_without_value_the_line_still_ends() -> None:
    assert printed(DEFAULT, record(), print_key="true", print_value="false") == b"k\n"
    assert printed(DEFAULT, record(), print_value="false") == b""


@pytest.mark.parametrize(
    ("kind", "text"),
    [(TIMESTAMP_LOG_APPEND_TIME, b"LogAppendTime:5"), (TIMESTAMP_NOT_AVAILABLE, b"NO_TIMESTAMP")],
)
def test_kinds_of_timestamps(kind: int, text: bytes) -> None:
    assert printed(DEFAULT, record(timestamp=(kind, 5)), print_timestamp="true") == text + b"\tv\n"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("String", "héllo".encode(), "héllo".encode()),
        ("ByteArray", b"\xff\x00", b"\xff\x00"),
        ("Integer", struct.pack(">i", -5), b"-5"),
        ("Long", struct.pack(">q", 2**40), b"1099511627776"),
        ("Short", struct.pack(">h", 7), b"7"),
        ("Double", struct.pack(">d", 1.5), b"1.5"),
        ("Float", struct.pack(">f", 0.1), b"0.1"),
        ("Boolean", b"\x01", b"true"),
        ("Bytes", b"a\\\x01", b"a\\\\\\x01"),
        ("UUID", str(uuid.UUID(int=1)).encode(), str(uuid.UUID(int=1)).encode()),
        ("Void", b"", b"null"),
    ],
)
def test_deserializers(name: str, data: bytes, text: bytes) -> None:
    assert deserializer(f"{_JAVA}{name}Deserializer", {})(data) == text
    message = record(value=data)
    assert printed(DEFAULT, message, value_deserializer=f"{name}Deserializer") == text + b"\n"


def test_a_deserializer_takes_the_properties_under_its_name() -> None:
    message = record(value=b"\xe9")
    properties = {"value_deserializer": f"{_JAVA}StringDeserializer"}
    formatter = make_formatter(
        DEFAULT,
        {k.replace("_", "."): v for k, v in properties.items()}
        | {"value.deserializer.deserializer.encoding": "ISO-8859-1"},
    )
    out = io.BytesIO()
    formatter.write(message, out)
    assert out.getvalue().decode() == "é\n"


def test_a_value_of_the_wrong_size_is_an_error_in_words() -> None:
    with pytest.raises(UndecodableRecord, match="expects 8 bytes and got 1"):
        printed(DEFAULT, record(), value_deserializer="LongDeserializer")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0"), (-0.0, "-0.0"), (1e7, "1.0E7"), (1.5e-5, "1.5E-5"), (123.25, "123.25"), (float("nan"), "NaN"),
     (9999999.0, "9999999.0"), (-1.25e300, "-1.25E300"), (float("-inf"), "-Infinity"), (0.001, "0.001")],
)  # fmt: skip
def test_floats_look_as_in_java(value: float, text: str) -> None:
    assert java_decimal(value) == text


def test_logging_formatter_prints_and_logs(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed("org.apache.kafka.tools.consumer.LoggingMessageFormatter", record()) == b"v\n"
    assert "INFO CreateTime:99, key:k, value:v" in capsys.readouterr().err


def test_no_op_prints_nothing_and_checksum_is_kafkas_partial_checksum() -> None:
    assert printed("kafka.tools.NoOpMessageFormatter", record()) == b""
    line = printed("kafka.tools.ChecksumMessageFormatter", record(), topic="t")
    from crc32c import crc32c

    assert line == b"t:checksum:%d\n" % crc32c((99).to_bytes(8) + (1).to_bytes(4) + (1).to_bytes(4))


def test_json_keeps_everything() -> None:
    out = io.BytesIO()
    JsonFormatter().write(record(key=b"\xff", value=None, headers=[("a", b"b")]), out)
    assert out.getvalue().decode() == (
        '{"topic":"t","partition":2,"offset":7,"timestamp":99,"timestampType":"CreateTime","headers":[["a","b"]],'
        '"key":{"base64":"/w=="},"value":null}\n'
    )


OFFSETS_KEY = stored.encode_offset_commit_key("g", "t", 3)
OFFSETS_VALUE = stored.encode_offset_commit_value(stored.OffsetCommitValue(42, 1000, 5, "note"), version=3)


def test_offsets_as_json_and_in_the_old_text() -> None:
    message = record(key=OFFSETS_KEY, value=OFFSETS_VALUE)
    assert printed("org.apache.kafka.tools.consumer.OffsetsMessageFormatter", message).decode() == (
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":3}},"value":{"version":3,"data":{"offset":42,'
        '"leaderEpoch":5,"metadata":"note","commitTimestamp":1000}}}\n'
    )
    old = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
    assert printed(old, message).decode() == (
        "[g,t,3]::OffsetAndMetadata(offset=42, leaderEpoch=Optional[5], metadata=note, commitTimestamp=1000, "
        "expireTimestamp=None)\n"
    )
    assert printed(old, record(key=OFFSETS_KEY, value=None)) == b"[g,t,3]::NULL\n"


def test_group_formatters_pass_over_other_records() -> None:
    groups = "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter"
    assert printed(groups, record(key=OFFSETS_KEY, value=OFFSETS_VALUE)) == b""
    assert printed(groups, record(key=None)) == b""
    group = stored.GroupMetadataValue("consumer", 1, "range", "m", (), 9)
    message = record(key=stored.encode_group_metadata_key("g"), value=stored.encode_group_metadata_value(group))
    assert b'"protocolType":"consumer","generation":1,"protocol":"range","leader":"m"' in printed(groups, message)


def test_the_transaction_log_as_json() -> None:
    name = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
    key = encode_transaction_key("x")
    empty = TransactionValue(7, 0, 60_000, TransactionState.EMPTY, updated_ms=9)
    assert json.loads(printed(name, record(key=key, value=encode_transaction_value(empty)))) == {
        "key": {"type": 0, "data": {"transactionalId": "x"}},
        "value": {
            "version": 1,
            "data": {
                "producerId": 7, "producerEpoch": 0, "transactionTimeoutMs": 60_000, "transactionStatus": 0,
                "transactionPartitions": None, "transactionLastUpdateTimestampMs": 9, "transactionStartTimestampMs": -1,
            },
        },
    }  # fmt: skip
    partitions = frozenset({TopicPartition("t", 2), TopicPartition("t", 0)})
    ending = TransactionValue(7, 1, 60_000, TransactionState.PREPARE_COMMIT, partitions, 9, 8, 7, 6, 2)
    data = json.loads(printed(name, record(key=key, value=encode_transaction_value(ending))))["value"]["data"]
    assert data["transactionPartitions"] == [{"topic": "t", "partitionIds": [0, 2]}]
    tagged = [data[field] for field in ("previousProducerId", "nextProducerId", "clientTransactionVersion")]
    assert tagged == [7, 6, 2]
    assert json.loads(printed(name, record(key=key, value=None)))["value"] is None
    assert printed(name, record(key=OFFSETS_KEY, value=b"")) == printed(name, record(key=None)) == b""
    with pytest.raises(UndecodableRecord, match="offset 7"):
        printed(name, record(key=key, value=b"\x00"))


def test_a_broken_group_record_is_an_error_in_words() -> None:
    with pytest.raises(UndecodableRecord, match="offset 7"):
        printed("OffsetsMessageFormatter", record(key=OFFSETS_KEY, value=b"\x00"))


@pytest.mark.parametrize(
    ("name", "reason"),
    [("com.acme.Formatter", "no formatter"), ("kafka.tools.ShareGroupStateMessageFormatter", "not served yet")],
)
def test_unknown_formatters_are_refused(name: str, reason: str) -> None:
    with pytest.raises(CommandError, match=reason):
        make_formatter(name, {})
    with pytest.raises(CommandError, match="no deserializer"):
        make_formatter(DEFAULT, {"key.deserializer": "com.acme.D"})
