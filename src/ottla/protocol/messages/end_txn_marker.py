"""Messages of end_txn_marker. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class EndTxnMarker(TopLevel):
    NAME: ClassVar[str] = "EndTxnMarker"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 32768
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("coordinator_epoch", "int32", 0),
    )
    coordinator_epoch: int = 0
