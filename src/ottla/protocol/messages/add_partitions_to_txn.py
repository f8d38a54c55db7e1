"""Messages of add_partitions_to_txn. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class AddPartitionsToTxnTopic(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("partitions", "int32", 0, array=True),
    )
    name: str = ""
    partitions: list[int] = field(default_factory=list[int])


class AddPartitionsToTxnTransaction(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 4),
        Field("producer_id", "int64", 4),
        Field("producer_epoch", "int16", 4),
        Field("verify_only", "bool", 4),
        Field("topics", AddPartitionsToTxnTopic, 4, array=True),
    )
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = field(default_factory=list[AddPartitionsToTxnTopic])


class AddPartitionsToTxnRequest(TopLevel):
    NAME: ClassVar[str] = "AddPartitionsToTxn"
    API_KEY: ClassVar[int] = 24
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("v3_and_below_transactional_id", "string", 0, until=3),
        Field("transactions", AddPartitionsToTxnTransaction, 4, array=True),
        Field("v3_and_below_producer_id", "int64", 0, until=3),
        Field("v3_and_below_producer_epoch", "int16", 0, until=3),
        Field("v3_and_below_topics", AddPartitionsToTxnTopic, 0, until=3, array=True),
    )
    v3_and_below_transactional_id: str = ""
    transactions: list[AddPartitionsToTxnTransaction] = field(default_factory=list[AddPartitionsToTxnTransaction])
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(default_factory=list[AddPartitionsToTxnTopic])


class AddPartitionsToTxnPartitionResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("partition_index", "int32", 0),
        Field("partition_error_code", "int16", 0),
    )
    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("name", "string", 0),
        Field("results_by_partition", AddPartitionsToTxnPartitionResult, 0, array=True),
    )
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(default_factory=list[AddPartitionsToTxnPartitionResult])


class AddPartitionsToTxnResult(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 4),
        Field("topic_results", AddPartitionsToTxnTopicResult, 4, array=True),
    )
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = field(default_factory=list[AddPartitionsToTxnTopicResult])


class AddPartitionsToTxnResponse(TopLevel):
    NAME: ClassVar[str] = "AddPartitionsToTxn"
    API_KEY: ClassVar[int] = 24
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 5
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("results_by_topic_v3_and_below", AddPartitionsToTxnTopicResult, 0, until=3, array=True),
        Field("error_code", "int16", 4),
        Field("results_by_transaction", AddPartitionsToTxnResult, 4, array=True),
    )
    throttle_time_ms: int = 0
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(default_factory=list[AddPartitionsToTxnTopicResult])
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = field(default_factory=list[AddPartitionsToTxnResult])
