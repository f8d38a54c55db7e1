"""Messages of add_offsets_to_txn. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class AddOffsetsToTxnRequest(TopLevel):
    NAME: ClassVar[str] = "AddOffsetsToTxn"
    API_KEY: ClassVar[int] = 25
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0),
        Field("producer_id", "int64", 0),
        Field("producer_epoch", "int16", 0),
        Field("group_id", "string", 0),
    )
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(TopLevel):
    NAME: ClassVar[str] = "AddOffsetsToTxn"
    API_KEY: ClassVar[int] = 25
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 4
    FLEXIBLE_FROM: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
