"""Messages of write_txn_markers. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class WritableTxnMarkerTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partition_indexes", "int32", 1, array=True),
    )
    name: str = ""
    partition_indexes: list[int] = field(default_factory=list[int])


class WritableTxnMarker(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 1),
        Field("producer_epoch", "int16", 1),
        Field("transaction_result", "bool", 1),
        Field("topics", WritableTxnMarkerTopic, 1, array=True),
        Field("coordinator_epoch", "int32", 1),
        Field("transaction_version", "int8", 2),
    )
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = field(default_factory=list[WritableTxnMarkerTopic])
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequest(TopLevel):
    NAME: ClassVar[str] = "WriteTxnMarkers"
    API_KEY: ClassVar[int] = 27
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarker, 1, array=True),
    )
    markers: list[WritableTxnMarker] = field(default_factory=list[WritableTxnMarker])


class WritableTxnMarkerPartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 1),
        Field("error_code", "int16", 1),
    )
    partition_index: int = 0
    error_code: int = 0


class WritableTxnMarkerTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 1),
        Field("partitions", WritableTxnMarkerPartitionResult, 1, array=True),
    )
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = field(default_factory=list[WritableTxnMarkerPartitionResult])


class WritableTxnMarkerResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("producer_id", "int64", 1),
        Field("topics", WritableTxnMarkerTopicResult, 1, array=True),
    )
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = field(default_factory=list[WritableTxnMarkerTopicResult])


class WriteTxnMarkersResponse(TopLevel):
    NAME: ClassVar[str] = "WriteTxnMarkers"
    API_KEY: ClassVar[int] = 27
    MIN_VERSION: ClassVar[int] = 1
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("markers", WritableTxnMarkerResult, 1, array=True),
    )
    markers: list[WritableTxnMarkerResult] = field(default_factory=list[WritableTxnMarkerResult])
