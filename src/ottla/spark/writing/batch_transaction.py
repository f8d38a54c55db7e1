"""The driver's end of a micro-batch's transaction. All of it runs on the loop of `ottla.spark.loop`."""

from collections.abc import Mapping, Sequence

from ottla.client.errors import ProducerFenced, TransactionLost
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import ProducerSettings
from ottla.client.transacting import (
    SECOND,
    ProducerId,
    TransactionalOffset,
    commit_offsets_in_transaction,
    end_transaction,
    init_producer,
    transaction_version,
)
from ottla.client.transactions import describe_transaction
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.writing.progress_notes import BatchNote, last_batch, positions_text
from ottla.spark.writing.transactions import ABORTED

NONE_ELSEWHERE: Mapping[TopicPartition, int] = {}

_open: dict[tuple[str, str], "BatchTransaction"] = {}
"""By bootstrap servers and transactional id: a driver keeps its ids, so that not every batch has to take them anew."""


async def open_transaction(
    settings: ProducerSettings, transactional_id: str, group: str, query: str
) -> "BatchTransaction":
    """What this driver holds of the id already, or the id taken anew: then nobody older can write with it."""
    key = (settings.client.bootstrap, transactional_id)
    known = _open.get(key)
    if known is not None and known.is_usable(settings, group, query):
        return known
    cluster = shared_cluster(settings.client)
    version = await transaction_version(cluster, transactional_id)
    # In this order: once the id is taken, no transaction of it is under way, and the notes are the last ones.
    producer = await init_producer(cluster, transactional_id, settings.transaction_timeout_ms)
    notes = [*(await group_offsets(cluster, group)).values()]
    notes += (await group_offsets(cluster, _notes_group(group))).values()
    last = last_batch((note.metadata for note in notes), query)
    _open[key] = BatchTransaction(settings, transactional_id, group, query, producer, version, last)
    return _open[key]


class BatchTransaction:
    """One transactional id in the hands of this driver; begin and then commit or abort, batch after batch."""

    def __init__(
        self,
        settings: ProducerSettings,
        transactional_id: str,
        group: str,
        query: str,
        producer: ProducerId,
        version: int,
        last: int | None,
    ) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        self._group = group
        self._query = query
        self._producer = producer
        self._version = version
        self._last = last
        self._wants_epoch = False
        self._is_lost = False

    def is_usable(self, settings: ProducerSettings, group: str, query: str) -> bool:
        return not self._is_lost and (settings, group, query) == (self._settings, self._group, self._query)

    def has(self, batch_id: int) -> bool:
        return self._last is not None and self._last >= batch_id

    async def begin(self) -> TransactionPart:
        """What tasks write with. Sequences start at 0 in every epoch, so each transaction has an epoch of its own."""
        if self._wants_epoch:
            with _LostOnFailure(self):
                self._producer = await init_producer(
                    shared_cluster(self._settings.client), self._transactional_id,
                    self._settings.transaction_timeout_ms, held=self._producer,
                )  # fmt: skip
            self._wants_epoch = False
        return TransactionPart(self._transactional_id, self._producer, self._version)

    async def commit(
        self,
        batch_id: int,
        offsets: Mapping[TopicPartition, int],
        written: Sequence[TopicPartition],
        elsewhere: Mapping[TopicPartition, int] = NONE_ELSEWHERE,
    ) -> None:
        """Make the batch visible, with the offsets it came from. `written` are partitions of its records.

        Positions `elsewhere` are of another cluster, whose topics need not be there in this one: they are noted.
        """
        note = str(BatchNote(self._query, batch_id, positions_text(elsewhere)))
        if offsets:
            await self._add_offsets(self._group, {at: TransactionalOffset(offsets[at], note) for at in offsets})
        elif written:
            await self._add_offsets(_notes_group(self._group), {min(written): TransactionalOffset(0, note)})
        else:
            return  # nothing was written and there is nothing to note: no transaction was begun
        with _LostOnFailure(self):
            await self._end(commit=True)
        self._last = batch_id

    async def abort(self) -> None:
        """Drop what was written. Fails if a younger driver has the id: then this one must stop."""
        with _LostOnFailure(self):
            try:
                await self._end(commit=False)
            except TransactionLost:
                # Nothing was written yet, which older brokers call an error; or its time was up.
                self._wants_epoch = True

    async def _add_offsets(self, group: str, offsets: Mapping[TopicPartition, TransactionalOffset]) -> None:
        with _LostOnFailure(self):
            try:
                await commit_offsets_in_transaction(
                    shared_cluster(self._settings.client), self._transactional_id, self._producer, group, offsets,
                    version=self._version,
                )  # fmt: skip
            except ProducerFenced as error:
                if not await self._has_timed_out():
                    raise
                raise self.timed_out() from error

    def timed_out(self) -> TransactionLost:
        return TransactionLost(
            ErrorCode.INVALID_TXN_STATE,
            f"the batch took longer than transaction.timeout.ms ({self._settings.transaction_timeout_ms} ms) and was "
            "aborted: raise it, or make batches smaller",
        )

    async def _has_timed_out(self) -> bool:
        """Whether the coordinator has raised the epoch by itself: a successor would have raised it once more."""
        now = await describe_transaction(shared_cluster(self._settings.client), self._transactional_id)
        held = (self._producer.id, self._producer.epoch + 1)
        return (now.producer_id, now.producer_epoch) == held and now.state in ABORTED

    async def _end(self, *, commit: bool) -> None:
        self._producer = await end_transaction(
            shared_cluster(self._settings.client), self._transactional_id, self._producer, commit=commit,
            version=self._version,
        )  # fmt: skip
        self._wants_epoch = self._version < SECOND

    def mark_lost(self) -> None:
        """Forget what is held: how the transaction ended is not known here, and the next batch asks."""
        self._is_lost = True


class _LostOnFailure:
    """Whatever goes wrong inside, the transaction is not used again."""

    def __init__(self, transaction: BatchTransaction) -> None:
        self._transaction = transaction

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error is not None:
            self._transaction.mark_lost()


async def commit_plain_offsets(settings: ProducerSettings, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Show progress without a transaction: after the records, so that a crash between the two repeats them."""
    refused = await commit_offsets(shared_cluster(settings.client), group, offsets)
    for partition, code in refused.items():
        raise ApiError(code, f"group `{group}` took no offset for {partition}: {code.name}")


def _notes_group(group: str) -> str:
    return f"{group}.batches"


loop.after_fork(_open.clear)
