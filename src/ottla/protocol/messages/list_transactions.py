"""Messages of list_transactions. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from msgspec import field

from ottla.protocol.schema import Field, Message, TopLevel


class ListTransactionsRequest(TopLevel):
    NAME: ClassVar[str] = "ListTransactions"
    API_KEY: ClassVar[int] = 66
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("state_filters", "string", 0, array=True),
        Field("producer_id_filters", "int64", 0, array=True),
        Field("duration_filter", "int64", 1),
        Field("transactional_id_pattern", "string", 2, nullable_since=2),
    )
    state_filters: list[str] = field(default_factory=list[str])
    producer_id_filters: list[int] = field(default_factory=list[int])
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class TransactionState(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("transactional_id", "string", 0),
        Field("producer_id", "int64", 0),
        Field("transaction_state", "string", 0),
    )
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponse(TopLevel):
    NAME: ClassVar[str] = "ListTransactions"
    API_KEY: ClassVar[int] = 66
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 2
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("throttle_time_ms", "int32", 0),
        Field("error_code", "int16", 0),
        Field("unknown_state_filters", "string", 0, array=True),
        Field("transaction_states", TransactionState, 0, array=True),
    )
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = field(default_factory=list[str])
    transaction_states: list[TransactionState] = field(default_factory=list[TransactionState])
