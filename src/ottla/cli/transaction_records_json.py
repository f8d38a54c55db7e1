"""Records of `__transaction_state` as the JSON that Kafka's tools print, and the formatter that prints it."""

import json
import struct
from typing import Any, BinaryIO

from confluent_kafka import Message

from ottla.cli.deserializers import UndecodableRecord
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.transaction_records import (
    NO_PRODUCER_ID,
    TRANSACTION_LOG,
    TransactionState,
    TransactionValue,
    decode_transaction_key,
    decode_transaction_value,
)

Json = dict[str, Any]


def key_json(transactional_id: str) -> Json:
    return {"transactionalId": transactional_id}


def value_json(data: bytes) -> tuple[int, Json]:
    """(version, fields). Tagged fields that have their default are left out."""
    value = decode_transaction_value(data)
    (version,) = struct.unpack_from(">h", data)
    fields: Json = {"producerId": value.producer_id}
    if value.previous_producer_id != NO_PRODUCER_ID:
        fields["previousProducerId"] = value.previous_producer_id
    if value.next_producer_id != NO_PRODUCER_ID:
        fields["nextProducerId"] = value.next_producer_id
    fields |= {
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.timeout_ms,
        "transactionStatus": int(value.state),
        "transactionPartitions": None if value.state is TransactionState.EMPTY else _partitions(value),
        "transactionLastUpdateTimestampMs": value.updated_ms,
        "transactionStartTimestampMs": value.started_ms,
    }
    if value.client_version:
        fields["clientTransactionVersion"] = value.client_version
    return version, fields


def _partitions(value: TransactionValue) -> list[Json]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(value.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitionIds": numbers} for topic, numbers in by_topic.items()]


class TransactionLogFormatter:
    def write(self, record: Message, out: BinaryIO) -> None:
        raw_key, raw_value = record.key(), record.value()
        if raw_key is None:
            return
        try:
            transactional_id = decode_transaction_key(raw_key)
            if transactional_id is None:
                return
            document: Json = {"key": {"type": TRANSACTION_LOG, "data": key_json(transactional_id)}, "value": None}
            if raw_value is not None:
                version, fields = value_json(raw_value)
                document["value"] = {"version": version, "data": fields}
        except MalformedMessage as error:
            raise UndecodableRecord(f"cannot read the record at offset {record.offset()}: {error}") from error
        out.write(json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
