"""How a transaction ends: by its producer, because a newer one fences it off, or because its time is up.

With transaction version 2 every end raises the epoch, so whoever still sends in the old one is refused by the
partitions themselves, and a second EndTxn in the old epoch can only be a retry:

                     abort               commit
                  retry   current     retry   current
  Empty           fenced  ends        fenced  invalid
  CompleteAbort   done    ends        invalid invalid
  CompleteCommit  invalid ends        done    invalid

While the markers of its last transaction are on their way, the producer that was told of the end asks in the new epoch
already: an EndTxn then is about the next transaction, and waits (Kafka fences it, though it did nothing wrong).

Before version 2 the epoch stays, nothing but the state tells a retry, and an end without a transaction is invalid.
"""

from msgspec.structs import replace

from ottla.broker.coordination.transactions.events import EPOCH_MAX, VERSION_WITH_EPOCH_BUMP, End, Step
from ottla.broker.coordination.transactions.states import COMPLETED, PREPARED
from ottla.model.errors import ErrorCode
from ottla.protocol.records import NO_PRODUCER_ID
from ottla.protocol.transaction_records import TransactionState, TransactionValue

NO_TIMEOUT_MS = 0x7FFFFFFF
"""A transaction with this timeout is ended from outside only (two-phase commit)."""

_S = TransactionState
_COMMITS = frozenset({_S.PREPARE_COMMIT, _S.COMPLETE_COMMIT})
_INVALID = Step(ErrorCode.INVALID_TXN_STATE)


def is_exhausted(epoch: int) -> bool:
    """The largest epoch is never a client's: it is kept for fencing the last one off."""
    return epoch >= EPOCH_MAX - 1


def is_timed_out(known: TransactionValue, now_ms: int) -> bool:
    return (
        known.state is _S.ONGOING and known.timeout_ms != NO_TIMEOUT_MS and known.started_ms + known.timeout_ms < now_ms
    )


def is_successor(known: TransactionValue, producer_id: int, producer_epoch: int) -> bool:
    """Whether this is the producer who was told of the end, and goes on before the markers are written."""
    if known.state not in PREPARED or known.client_version < VERSION_WITH_EPOCH_BUMP:
        return False
    if known.next_producer_id != NO_PRODUCER_ID:
        return (producer_id, producer_epoch) == (known.next_producer_id, 0)
    return (producer_id, producer_epoch) == (known.producer_id, known.producer_epoch)


def decide(known: TransactionValue, event: End, now_ms: int, fresh_producer_id: int, last_epoch: int) -> Step:
    if event.version >= VERSION_WITH_EPOCH_BUMP:
        return _with_epoch_bump(known, event, now_ms, fresh_producer_id)
    return _without_epoch_bump(known, event, now_ms, last_epoch)


def _without_epoch_bump(known: TransactionValue, event: End, now_ms: int, last_epoch: int) -> Step:
    if known.producer_id != event.producer_id:
        return Step(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != event.producer_epoch:
        return Step(ErrorCode.PRODUCER_FENCED)
    if known.state is _S.ONGOING:
        value = _prepared(known, event.commit, known.producer_epoch, event.version, now_ms)
        return Step(value=value, last_epoch=last_epoch)
    if known.state is _S.EMPTY or event.commit != (known.state in _COMMITS):
        return _INVALID
    return Step(ErrorCode.CONCURRENT_TRANSACTIONS) if known.state in PREPARED else Step()


def _with_epoch_bump(known: TransactionValue, event: End, now_ms: int, fresh_producer_id: int) -> Step:
    if is_successor(known, event.producer_id, event.producer_epoch):
        return Step(ErrorCode.CONCURRENT_TRANSACTIONS)
    is_retry_with_old_id = (
        known.previous_producer_id == event.producer_id != known.producer_id
        and event.producer_epoch == EPOCH_MAX - 1
        and known.producer_epoch == 0
    )
    if known.producer_id != event.producer_id and not is_retry_with_old_id:
        return Step(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    # The epoch was raised by the end of a transaction only if that spoke version 2 too; else a newer producer has it.
    was_raised = known.client_version >= VERSION_WITH_EPOCH_BUMP and known.producer_epoch == event.producer_epoch + 1
    is_retry = is_retry_with_old_id or was_raised
    is_current = not is_retry_with_old_id and known.producer_epoch == event.producer_epoch
    if known.state in PREPARED:
        if not is_retry:
            return Step(ErrorCode.PRODUCER_FENCED)
        return Step(ErrorCode.CONCURRENT_TRANSACTIONS) if event.commit == (known.state in _COMMITS) else _INVALID
    if not is_current and not (is_retry and known.state in COMPLETED):
        return Step(ErrorCode.PRODUCER_FENCED)
    if is_retry:
        if event.commit != (known.state in _COMMITS):
            return _INVALID
        return Step(producer_id=known.producer_id, producer_epoch=known.producer_epoch)
    if event.commit and known.state is not _S.ONGOING:
        return _INVALID
    following = NO_PRODUCER_ID
    if is_exhausted(known.producer_epoch):
        if fresh_producer_id == NO_PRODUCER_ID:
            return Step(wants_producer_id=True)
        following = fresh_producer_id
    value = _prepared(known, event.commit, known.producer_epoch + 1, event.version, now_ms, following)
    changed = completed(value, now_ms)  # what the producer goes on with, be it before the markers are written
    return Step(
        value=value,
        producer_id=changed.producer_id,
        producer_epoch=changed.producer_epoch,
        last_epoch=known.producer_epoch,
    )


def fence(known: TransactionValue, now_ms: int, fresh_producer_id: int, last_epoch: int) -> Step:
    """Abort an open transaction under the next epoch, so that its producer can do nothing more in it.

    This speaks version 2 whatever the client spoke: if the epochs are used up, the id changes when it is complete.
    """
    assert known.state is _S.ONGOING, known
    following = NO_PRODUCER_ID
    if is_exhausted(known.producer_epoch):
        if fresh_producer_id == NO_PRODUCER_ID:
            return Step(wants_producer_id=True)
        following = fresh_producer_id
    value = _prepared(known, False, known.producer_epoch + 1, VERSION_WITH_EPOCH_BUMP, now_ms, following)
    return Step(ErrorCode.CONCURRENT_TRANSACTIONS, value, last_epoch=last_epoch)


def _prepared(
    known: TransactionValue,
    commit: bool,
    epoch: int,
    version: int,
    now_ms: int,
    next_producer_id: int = NO_PRODUCER_ID,
) -> TransactionValue:
    return replace(
        known,
        producer_epoch=epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=next_producer_id,
        state=_S.PREPARE_COMMIT if commit else _S.PREPARE_ABORT,
        # Without a transaction there is no start, but a complete one must have one.
        started_ms=known.started_ms if known.state is _S.ONGOING else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def completed(known: TransactionValue, now_ms: int) -> TransactionValue:
    changes_id = known.next_producer_id != NO_PRODUCER_ID
    return replace(
        known,
        producer_id=known.next_producer_id if changes_id else known.producer_id,
        producer_epoch=0 if changes_id else known.producer_epoch,
        previous_producer_id=known.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=_S.COMPLETE_COMMIT if known.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
