"""Messages of allocate_producer_ids. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class AllocateProducerIdsRequest(TopLevel):
    NAME: ClassVar[str] = "AllocateProducerIds"
    API_KEY: ClassVar[int] = 67
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("broker_id", "int32", 0),
        Field("broker_epoch", "int64", 0),
    )
    broker_id: int = 0
    broker_epoch: int = -1


class AllocateProducerIdsResponse(TopLevel):
    NAME: ClassVar[str] = "AllocateProducerIds"
    API_KEY: ClassVar[int] = 67
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("producer_id_start", "int64", 0),
        Field("producer_id_len", "int32", 0),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id_start: int = 0
    producer_id_len: int = 0
