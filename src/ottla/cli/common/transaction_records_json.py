"""Records of `__transaction_state` as the JSON that Kafka's tools print."""

import struct
from typing import Any

from ottla.protocol.records import NO_PRODUCER_ID
from ottla.protocol.transaction_records import (
    TransactionState,
    TransactionValue,
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
