"""What may be asked of a transactional id, and what the machine decides."""

from collections.abc import Sequence

import msgspec

from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_EPOCH
from ottla.protocol.records import NO_PRODUCER_ID
from ottla.protocol.transaction_records import TransactionValue

EPOCH_MAX = 0x7FFF
VERSION_WITH_EPOCH_BUMP = 2
"""From this transaction version on every end of a transaction raises the producer's epoch."""


class Init(msgspec.Struct, frozen=True):
    """InitProducerId. Id and epoch are those that the producer believes to have, -1 if it is new."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH

    @property
    def expects(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


class TransactionalWrite(msgspec.Struct, frozen=True):
    """What a producer is about to write, in partitions that have to be part of its transaction.

    With `add` they become part of it (transaction version 2); without it they must be already.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]
    add: bool


class End(msgspec.Struct, frozen=True):
    """EndTxn."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    version: int = 0
    """The transaction version that the client speaks."""


class Step(msgspec.Struct, frozen=True):
    """A decision about one transactional id.

    `value` is appended and replayed; with it the machine is told `last_epoch`, which the log does not keep. Then the
    producer is answered with the error, or with its id and epoch. A step that `wants_producer_id` decides nothing
    yet: ask again with a fresh one.
    """

    error: ErrorCode = ErrorCode.NONE
    value: TransactionValue | None = None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    wants_producer_id: bool = False
