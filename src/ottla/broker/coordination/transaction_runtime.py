"""The transaction coordinator: lets the machine decide, writes what it decided, and brings the markers to partitions.

The order that makes a transaction atomic: the outcome (Prepare*) is in the log before the first marker is written,
and Complete* follows after the last. A coordinator that finds Prepare* when it reads its log writes all markers again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

from ottla.broker.coordination.coordinator import Coordinator
from ottla.broker.coordination.log import CoordinatorLog
from ottla.broker.coordination.machine_shard import MachineShard
from ottla.broker.coordination.markers import Marker, MarkerWriter, write_all
from ottla.broker.coordination.scheduler import Scheduler
from ottla.broker.coordination.transactions.events import VERSION_WITH_EPOCH_BUMP, End, Init, Step, TransactionalWrite
from ottla.broker.coordination.transactions.loading import LoadedTransactions
from ottla.broker.coordination.transactions.machine import TransactionMachine
from ottla.broker.coordination.transactions.states import PREPARED
from ottla.config.broker import BrokerSettings
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TRANSACTION_STATE, TopicPartition
from ottla.protocol.records import NO_PRODUCER_ID, Codec, NewRecord
from ottla.protocol.transaction_records import (
    STRING_BYTES_MAX,
    TransactionState,
    TransactionValue,
    encode_transaction_key,
    encode_transaction_value,
)

logger = logging.getLogger(__name__)

MARKERS_AT_ONCE_MAX = 100
"""A transaction over more partitions is completed in pieces, with other work in between."""
MARKER_RETRY_SECONDS = 0.1
MARKER_RETRY_SECONDS_MAX = 1.0
INIT_ATTEMPTS_MAX = 5

Errors = dict[TopicPartition, ErrorCode]


class TransactionShard(MachineShard[TransactionMachine]):
    TOPIC = TRANSACTION_STATE

    def __init__(self, partition: int, epoch: int, log: CoordinatorLog) -> None:
        super().__init__(partition, epoch, log)
        self.finishing: dict[str, asyncio.Task[None]] = {}
        """Ids whose last transaction is decided and not complete yet."""

    def install(self, loaded: LoadedTransactions) -> None:
        self.machine = loaded.machine
        self.bytes_since_snapshot = loaded.size_bytes
        self._foreign = loaded.foreign

    def encode(self, key: str, value: TransactionValue | None, timestamp: int) -> NewRecord:
        return NewRecord(
            encode_transaction_key(key), None if value is None else encode_transaction_value(value), timestamp
        )


class TransactionCoordinator(Coordinator[TransactionShard, LoadedTransactions]):
    def __init__(
        self,
        log: CoordinatorLog,
        settings: Callable[[], BrokerSettings],
        clock: Clock,
        markers: MarkerWriter,
        allocate_producer_id: Callable[[], Awaitable[int]],
        scheduler: Scheduler | None = None,
    ) -> None:
        super().__init__(log, settings, clock, scheduler)
        self._markers = markers
        self._allocate_producer_id = allocate_producer_id

    # Requests of producers

    async def init(self, event: Init) -> Step:
        """An id and an epoch for a producer; whoever had an older one is fenced off, its transaction aborted."""
        _check_name(event.transactional_id)
        if not 0 < event.timeout_ms <= self._settings().transaction_max_timeout_ms:
            return Step(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        fresh = NO_PRODUCER_ID
        step = Step(ErrorCode.CONCURRENT_TRANSACTIONS)
        for _ in range(INIT_ATTEMPTS_MAX):
            shard, machine = self._find(event.transactional_id)
            step = machine.init(event, self._clock.now_ms(), fresh)
            if step.wants_producer_id:
                fresh = await self._fresh_producer_id()
                continue
            if step.value is not None:
                fresh = NO_PRODUCER_ID
                await self._apply(shard, event.transactional_id, step)
            if step.error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                return step
            # The transaction before is about to end, on one broker at once: no need to let the client ask again.
            if not await self._finished(shard, event.transactional_id, self._patience_s):
                return step
        return step

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        version: int = 0,
    ) -> ErrorCode | Awaitable[ErrorCode]:
        """Make partitions part of the open transaction, or begin one with them.

        Who was told that a transaction is decided begins the next one while markers may still be on their way: that
        is waited for a little, which is quicker than to let the producer ask again. With version 2 it is a broker
        that asks, for many producers at once, and asks again: those who share its request are not held up for long.
        """
        event = (transactional_id, producer_id, producer_epoch, partitions)
        shard, error = self._add(*event, version)
        if error is ErrorCode.CONCURRENT_TRANSACTIONS and transactional_id in shard.finishing:
            return self._add_when_finished(shard, *event, version)
        return self._when_committed(shard, error)

    async def _add_when_finished(
        self,
        shard: TransactionShard,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        version: int,
    ) -> ErrorCode:
        patience_s = self._patience_s
        if version >= VERSION_WITH_EPOCH_BUMP:
            patience_s = min(patience_s, self._settings().add_partitions_to_txn_retry_backoff_ms / 1000.0)
        await self._finished(shard, transactional_id, patience_s)
        shard, error = self._add(transactional_id, producer_id, producer_epoch, partitions, version)
        answer = self._when_committed(shard, error)
        return answer if isinstance(answer, ErrorCode) else await answer

    def _add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        version: int,
    ) -> tuple[TransactionShard, ErrorCode]:
        shard, machine = self._find(transactional_id)
        step = machine.add_partitions(
            transactional_id, producer_id, producer_epoch, partitions, self._clock.now_ms(), version
        )
        if step.value is not None:
            self._append(shard, transactional_id, step)
        return shard, step.error

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Collection[TopicPartition]
    ) -> Errors | Awaitable[Errors]:
        """NONE for those that are part of the producer's open transaction, and will be whatever breaks."""
        shard, machine = self._find(transactional_id)
        return self._when_committed(shard, machine.verify(transactional_id, producer_id, producer_epoch, partitions))

    def ensure_partitions(self, write: TransactionalWrite) -> Errors | Awaitable[Errors]:
        """NONE for each partition that is part of the transaction.

        The codes are those of a partition: a fenced producer has an INVALID_PRODUCER_EPOCH there.
        """
        producer, partitions = (write.transactional_id, write.producer_id, write.producer_epoch), write.partitions
        try:
            if write.add:
                added = self.add_partitions(*producer, partitions, VERSION_WITH_EPOCH_BUMP)
                if not isinstance(added, ErrorCode):
                    return _later(added, partitions)
                return dict.fromkeys(partitions, in_partition(added))
            if not self._settings().transaction_partition_verification_enable:
                return dict.fromkeys(partitions, ErrorCode.NONE)
            verified = self.verify_partitions(*producer, partitions)
            if not isinstance(verified, dict):
                return _later(verified, partitions)
            return {partition: in_partition(code) for partition, code in verified.items()}
        except ApiError as error:
            return dict.fromkeys(partitions, error.code)

    async def end(self, event: End) -> Step:
        """Commit or abort. The answer comes when the outcome is in the log, whether or not all markers are written."""
        fresh = NO_PRODUCER_ID
        while True:
            shard, machine = self._find(event.transactional_id)
            step = machine.end(event, self._clock.now_ms(), fresh)
            if step.wants_producer_id:
                fresh = await self._fresh_producer_id()
                continue
            if step.value is not None:
                await self._apply(shard, event.transactional_id, step)
            elif step.error is ErrorCode.CONCURRENT_TRANSACTIONS and event.transactional_id in shard.finishing:
                # The end before it is about to be complete: no need to let the client ask again.
                if await self._finished(shard, event.transactional_id, self._patience_s):
                    continue
            else:
                await self._confirm(shard, machine, event.transactional_id)
            return step

    @property
    def _patience_s(self) -> float:
        """How long a request waits here for the transaction before to be complete."""
        return self._settings().add_partitions_to_txn_retry_backoff_max_ms / 1000.0

    async def _confirm(self, shard: TransactionShard, machine: TransactionMachine, transactional_id: str) -> None:
        """Before a transaction is said to have ended already: write what is known once more and wait for the replicas.

        A coordinator that was replaced and does not know it yet takes the end of the next transaction for that of the
        last one; its replicas will not confirm it, and the client asks again.
        """
        value = machine.transactions.get(transactional_id)
        if value is None:
            return
        self._write(shard, transactional_id, value)
        committed = self._when_committed(shard, None)
        if committed is not None:
            await committed

    # Administration

    def describe(self, transactional_id: str) -> TransactionValue | None:
        """None if there is no such id."""
        _, machine = self._find(transactional_id)
        return machine.transactions.get(transactional_id)

    def list_transactions(self) -> list[tuple[str, TransactionValue]]:
        if not self._is_active:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if any(shard.is_to_load for shard in self._shards.values()):
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [
            entry
            for shard in self._shards.values()
            if shard.machine is not None
            for entry in shard.machine.transactions.items()
        ]

    # Time

    async def abort_timed_out(self) -> None:
        """Abort transactions that have been open for longer than their producers allowed."""
        for shard in list(self._shards.values()):
            names = [] if shard.machine is None else shard.machine.timed_out(self._clock.now_ms())
            for name in names:
                try:
                    await self._abort_if_timed_out(shard, name)
                except ApiError as error:
                    logger.warning("transactional.id %s: Cannot abort the timed-out transaction yet: %s", name, error)

    async def _abort_if_timed_out(self, shard: TransactionShard, transactional_id: str) -> None:
        fresh = NO_PRODUCER_ID
        while shard.machine is not None:
            step = shard.machine.abort_timed_out(transactional_id, self._clock.now_ms(), fresh)
            if step is None:
                return
            if step.wants_producer_id:
                fresh = await self._fresh_producer_id()
                continue
            await self._apply(shard, transactional_id, step)
            logger.info(
                "transactional.id %s: Aborted the transaction, which timed out (transaction.timeout.ms)",
                transactional_id,
            )
            return

    async def expire(self) -> None:
        """Forget ids that nobody has used for long."""
        for shard in list(self._shards.values()):
            if shard.machine is None:
                continue
            expiration_ms = self._settings().transactional_id_expiration_ms
            try:
                for name in shard.machine.expired(self._clock.now_ms(), expiration_ms):
                    self._write(shard, name, None)
            except ApiError as error:
                logger.warning(
                    "%s-%d: Cannot remove expired transactional ids: %s", shard.TOPIC, shard.partition, error
                )
            await asyncio.sleep(0)

    # Doing what was decided

    async def _apply(self, shard: TransactionShard, transactional_id: str, step: Step) -> None:
        """Append a step and wait until it is committed."""
        self._append(shard, transactional_id, step)
        committed = self._when_committed(shard, None)
        if committed is not None:
            await committed

    def _write(self, shard: TransactionShard, transactional_id: str, value: TransactionValue | None) -> None:
        now_ms = self._clock.now_ms()
        self._written(shard, lambda: shard.write([(transactional_id, value)], now_ms, Codec.NONE))

    def _append(self, shard: TransactionShard, transactional_id: str, step: Step) -> None:
        assert step.value is not None
        assert shard.machine is not None
        self._write(shard, transactional_id, step.value)
        shard.machine.remember_last_epoch(transactional_id, step.last_epoch)
        if step.value.state in PREPARED:
            self._finish(shard, transactional_id, step.value)

    def _finish(self, shard: TransactionShard, transactional_id: str, value: TransactionValue) -> None:
        """Markers, then Complete*: at once if nothing has to be waited for, which is so on one healthy broker."""
        partitions: Collection[TopicPartition] = value.partitions
        if shard.last_commit is None and len(partitions) <= MARKERS_AT_ONCE_MAX:
            left, waiting = self._write_markers(shard, value, partitions)
            if not left and not waiting and self._complete(shard, transactional_id):
                return
        else:
            left, waiting = set(partitions), {}
        task = self._spawn(self._finish_later(shard, transactional_id, value, left, waiting))
        shard.finishing[transactional_id] = task

        def forget(done: asyncio.Task[None]) -> None:
            if shard.finishing.get(transactional_id) is done:
                del shard.finishing[transactional_id]

        task.add_done_callback(forget)

    async def _finished(self, shard: TransactionShard, transactional_id: str, patience_s: float) -> bool:
        """Wait a little for the last transaction of an id to be complete. Whether it is."""
        task = shard.finishing.get(transactional_id)
        if task is None:
            return True
        await asyncio.wait([task], timeout=patience_s)
        return task.done()

    async def _finish_later(
        self,
        shard: TransactionShard,
        transactional_id: str,
        value: TransactionValue,
        left: set[TopicPartition],
        waiting: dict[TopicPartition, Awaitable[None]],
    ) -> None:
        if shard.last_commit is not None:
            # If it is lost, the shard is read again, and this one is not the shard any more.
            await asyncio.wait([shard.last_commit])
        pause = MARKER_RETRY_SECONDS
        while self._is_current(shard):
            refused = await _refused(waiting)
            waiting = {}
            if refused:
                # Asked again at once, a broker that is not there would be asked all the time.
                left |= refused
                await asyncio.sleep(pause)
                pause = min(2 * pause, MARKER_RETRY_SECONDS_MAX)
            if not self._is_current(shard):
                return
            if left:
                left, waiting = await self._write_in_pieces(shard, value, left)
                if not left:
                    continue
            elif self._complete(shard, transactional_id):
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, MARKER_RETRY_SECONDS_MAX)

    async def _write_in_pieces(
        self, shard: TransactionShard, value: TransactionValue, partitions: Collection[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, Awaitable[None]]]:
        ordered = sorted(partitions)
        left: set[TopicPartition] = set()
        waiting: dict[TopicPartition, Awaitable[None]] = {}
        for first in range(0, len(ordered), MARKERS_AT_ONCE_MAX):
            more_left, more_waiting = self._write_markers(shard, value, ordered[first : first + MARKERS_AT_ONCE_MAX])
            left |= more_left
            waiting |= more_waiting
            await asyncio.sleep(0)
        return left, waiting

    def _write_markers(
        self, shard: TransactionShard, value: TransactionValue, partitions: Collection[TopicPartition]
    ) -> tuple[set[TopicPartition], dict[TopicPartition, Awaitable[None]]]:
        marker = Marker(
            value.producer_id,
            value.producer_epoch,
            value.state is TransactionState.PREPARE_COMMIT,
            shard.epoch,
            value.client_version,
        )
        return write_all(
            self._markers,
            marker,
            partitions,
            lambda error: logger.debug("Writing a transaction marker again: %s", error),
        )

    def _complete(self, shard: TransactionShard, transactional_id: str) -> bool:
        """Note that every partition has its marker; False if the log does not take it now."""
        assert shard.machine is not None
        is_commit = shard.machine.transactions[transactional_id].state is TransactionState.PREPARE_COMMIT
        step = shard.machine.complete(transactional_id, self._clock.now_ms())
        try:
            self._append(shard, transactional_id, step)
        except ApiError as error:
            logger.warning(
                "transactional.id %s: Cannot write the completion of the transaction yet: %s", transactional_id, error
            )
            return False
        if is_commit:
            self.counts.committed_transactions += 1
        else:
            self.counts.aborted_transactions += 1
        return True

    async def _fresh_producer_id(self) -> int:
        try:
            return await self._allocate_producer_id()
        except ApiError as error:
            # The metadata cannot be written now. Producers try again when they are told this, as Kafka tells them.
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, error.message) from error

    # Shards

    def _find(self, transactional_id: str) -> tuple[TransactionShard, TransactionMachine]:
        _check_name(transactional_id)
        shard = self._shard_of(transactional_id)
        assert shard.machine is not None
        return shard, shard.machine

    def _new_shard(self, partition: int, epoch: int) -> TransactionShard:
        return TransactionShard(partition, epoch, self._log)

    def _read(self, chunks: Iterator[bytes | memoryview]) -> LoadedTransactions:
        return LoadedTransactions(chunks)

    def _install(self, shard: TransactionShard, loaded: LoadedTransactions) -> None:
        shard.install(loaded)
        for transactional_id in loaded.machine.prepared():
            self._finish(shard, transactional_id, loaded.machine.transactions[transactional_id])
        self._start_snapshot_if_due(shard)

    def _commit_timeout_ms(self) -> int:
        return self._settings().request_timeout_ms


def _check_name(transactional_id: str) -> None:
    if not transactional_id or len(transactional_id) > STRING_BYTES_MAX:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"a transactional id has 1 to {STRING_BYTES_MAX} bytes")


def in_partition(code: ErrorCode) -> ErrorCode:
    """What a partition tells a producer when its coordinator said this."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


async def _refused(waiting: Mapping[TopicPartition, Awaitable[None]]) -> set[TopicPartition]:
    """Wait for markers that are on their way; those that did not arrive are to be written again."""
    refused: set[TopicPartition] = set()
    for partition, pending in waiting.items():
        try:
            await pending
        except (ApiError, OSError) as error:
            logger.debug("%s: Writing the transaction marker again: %s", partition, error)
            refused.add(partition)
    return refused


async def _later(pending: Awaitable[ErrorCode | Errors], partitions: Sequence[TopicPartition]) -> Errors:
    try:
        answer = await pending
    except ApiError as error:
        answer = error.code
    codes = answer if isinstance(answer, dict) else dict.fromkeys(partitions, answer)
    return {partition: in_partition(code) for partition, code in codes.items()}
