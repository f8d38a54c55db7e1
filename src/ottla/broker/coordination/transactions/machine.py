"""The transactional ids of one partition of `__transaction_state`: requests in, decisions out.

A decision is a new value for the log; `replay` alone changes what is known, live and at load alike. One thing the log
does not keep, as in Kafka: the epoch before the last InitProducerId, by which a retry of that call is recognised.
"""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ottla.broker.coordination.transactions import ending
from ottla.broker.coordination.transactions.events import EPOCH_MAX, End, Init, Step
from ottla.broker.coordination.transactions.states import AT_REST, PREPARED, may_follow
from ottla.model.errors import ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.sentinels import NO_EPOCH, NO_TIMESTAMP
from ottla.protocol.records import NO_PRODUCER_ID
from ottla.protocol.transaction_records import TransactionState, TransactionValue

RECORD_BYTES = 160
PARTITION_BYTES = 12
"""About what a record takes, for the decision whether a snapshot is worth it."""

WANTS_PRODUCER_ID = Step(wants_producer_id=True)
CONCURRENT = Step(ErrorCode.CONCURRENT_TRANSACTIONS)
FENCED = Step(ErrorCode.PRODUCER_FENCED)
NOT_MAPPED = Step(ErrorCode.INVALID_PRODUCER_ID_MAPPING)


class TransactionMachine:
    def __init__(self) -> None:
        self.transactions: dict[str, TransactionValue] = {}
        self._last_epochs: dict[str, int] = {}

    # Hard state

    def replay(self, key: str, value: TransactionValue | None) -> None:
        if value is None or value.state is TransactionState.DEAD:
            self.transactions.pop(key, None)
        else:
            self.transactions[key] = value
        self._last_epochs.pop(key, None)

    def remember_last_epoch(self, transactional_id: str, epoch: int) -> None:
        """Call it after the replay of a step's value."""
        if epoch != NO_EPOCH:
            self._last_epochs[transactional_id] = epoch

    def snapshot(self) -> Iterator[tuple[str, TransactionValue]]:
        for transactional_id in list(self.transactions):
            value = self.transactions.get(transactional_id)
            if value is not None:
                yield transactional_id, value

    def snapshot_size_bytes(self) -> int:
        return sum(RECORD_BYTES + PARTITION_BYTES * len(value.partitions) for value in self.transactions.values())

    # A producer comes

    def init(self, event: Init, now_ms: int, fresh_producer_id: int = NO_PRODUCER_ID) -> Step:
        """InitProducerId. CONCURRENT_TRANSACTIONS with a value: the open transaction is aborted; then ask again."""
        known = self.transactions.get(event.transactional_id)
        if known is None:
            if fresh_producer_id == NO_PRODUCER_ID:
                return WANTS_PRODUCER_ID
            known = TransactionValue(fresh_producer_id, NO_EPOCH, event.timeout_ms, TransactionState.EMPTY)
            return self._begin(event, known, 0, NO_EPOCH, now_ms)
        if event.expects and not self._is_own_id(event, known):
            return FENCED
        if known.state in PREPARED:
            return CONCURRENT
        last_epoch = self._last_epochs.get(event.transactional_id, NO_EPOCH)
        is_current = not event.expects or event.producer_epoch == known.producer_epoch
        is_retry = event.expects and NO_EPOCH != event.producer_epoch == last_epoch
        if not is_current and not is_retry:
            return FENCED
        if known.state is TransactionState.ONGOING:
            # The epoch that ends it is not given to anyone else, unless the one who asks is its producer itself.
            return ending.fence(known, now_ms, fresh_producer_id, known.producer_epoch if event.expects else NO_EPOCH)
        if not is_current:
            return self._begin(event, known, known.producer_epoch, last_epoch, now_ms)
        own_epoch = known.producer_epoch if event.expects else NO_EPOCH
        if ending.is_exhausted(known.producer_epoch):
            if fresh_producer_id == NO_PRODUCER_ID:
                return WANTS_PRODUCER_ID
            return self._begin(event, known, 0, own_epoch, now_ms, fresh_producer_id)
        return self._begin(event, known, known.producer_epoch + 1, own_epoch, now_ms)

    @staticmethod
    def _is_own_id(event: Init, known: TransactionValue) -> bool:
        if event.producer_id == known.producer_id:
            return True
        # The answer to the call that used up the epochs may have been lost.
        return event.producer_id == known.previous_producer_id and ending.is_exhausted(event.producer_epoch)

    @staticmethod
    def _begin(
        event: Init,
        known: TransactionValue,
        epoch: int,
        last_epoch: int,
        now_ms: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> Step:
        given = known.producer_id if producer_id == NO_PRODUCER_ID else producer_id
        # A retry after the ids were changed must stay recognisable if the answer is lost once more.
        is_unchanged = given == known.producer_id and epoch == known.producer_epoch
        value = replace(
            known,
            producer_id=given,
            producer_epoch=epoch,
            previous_producer_id=known.previous_producer_id if is_unchanged else known.producer_id,
            timeout_ms=event.timeout_ms,
            state=TransactionState.EMPTY,
            partitions=frozenset(),
            started_ms=NO_TIMESTAMP,
            updated_ms=now_ms,
        )
        return Step(value=value, producer_id=given, producer_epoch=epoch, last_epoch=last_epoch)

    # A transaction grows

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        now_ms: int,
        version: int = 0,
    ) -> Step:
        known = self.transactions.get(transactional_id)
        refusal = self._refusal(known, producer_id, producer_epoch)
        if known is None or refusal is not None:
            return refusal or NOT_MAPPED
        is_open = known.state is TransactionState.ONGOING
        if is_open and known.partitions.issuperset(partitions):
            return Step()
        value = replace(
            known,
            previous_producer_id=known.producer_id,
            state=TransactionState.ONGOING,
            partitions=known.partitions.union(partitions),
            started_ms=known.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=version,
        )
        return Step(value=value, last_epoch=self._last_epochs.get(transactional_id, NO_EPOCH))

    def verify(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether the partitions are part of the transaction that this producer has open."""
        known = self.transactions.get(transactional_id)
        refusal = self._refusal(known, producer_id, producer_epoch)
        if known is None or refusal is not None:
            return dict.fromkeys(partitions, (refusal or NOT_MAPPED).error)
        return {
            partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }

    @staticmethod
    def _refusal(known: TransactionValue | None, producer_id: int, producer_epoch: int) -> Step | None:
        if known is not None and ending.is_successor(known, producer_id, producer_epoch):
            return CONCURRENT
        if known is None or known.producer_id != producer_id:
            return NOT_MAPPED
        if known.producer_epoch != producer_epoch:
            return FENCED
        return CONCURRENT if known.state in PREPARED else None

    # A transaction ends

    def end(self, event: End, now_ms: int, fresh_producer_id: int = NO_PRODUCER_ID) -> Step:
        known = self.transactions.get(event.transactional_id)
        if known is None:
            return NOT_MAPPED
        last_epoch = self._last_epochs.get(event.transactional_id, NO_EPOCH)
        return ending.decide(known, event, now_ms, fresh_producer_id, last_epoch)

    def complete(self, transactional_id: str, now_ms: int) -> Step:
        """Every partition has its marker."""
        known = self.transactions[transactional_id]
        assert known.state in PREPARED, known
        last_epoch = self._last_epochs.get(transactional_id, NO_EPOCH)
        return Step(value=ending.completed(known, now_ms), last_epoch=last_epoch)

    def abort_timed_out(
        self, transactional_id: str, now_ms: int, fresh_producer_id: int = NO_PRODUCER_ID
    ) -> Step | None:
        """Abort the transaction of an id if its time is up; None if there is nothing to do (any more)."""
        known = self.transactions.get(transactional_id)
        if known is None or not ending.is_timed_out(known, now_ms):
            return None
        return ending.fence(known, now_ms, fresh_producer_id, NO_EPOCH)

    def timed_out(self, now_ms: int) -> list[str]:
        return [name for name, value in self.transactions.items() if ending.is_timed_out(value, now_ms)]

    def prepared(self) -> list[str]:
        """Ids whose outcome is decided and whose markers are to be written."""
        return [name for name, value in self.transactions.items() if value.state in PREPARED]

    def expired(self, now_ms: int, expiration_ms: int) -> list[str]:
        """Ids that have not been used for so long that they can be forgotten."""
        return [
            name
            for name, value in self.transactions.items()
            if value.state in AT_REST and value.updated_ms <= now_ms - expiration_ms
        ]


def check_step(before: TransactionValue | None, after: TransactionValue) -> None:
    """The rules that every value appended after another one obeys; broken ones are bugs, not errors of clients."""
    assert 0 <= after.producer_epoch <= EPOCH_MAX, after
    if before is None:
        assert after.state is TransactionState.EMPTY, after
        return
    assert may_follow(before.state, after.state), (before, after)
    same_id = before.producer_id == after.producer_id
    assert not same_id or before.producer_epoch <= after.producer_epoch <= before.producer_epoch + 1, (before, after)
    assert same_id or after.producer_epoch == 0, (before, after)
    if after.state is TransactionState.ONGOING:
        assert after.partitions >= before.partitions, (before, after)
    if after.state in PREPARED:
        assert after.partitions == before.partitions, (before, after)
