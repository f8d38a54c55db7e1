"""The driver's part of a streaming write: take over, decide which transactions are the batch, and commit them.

All of it runs on the loop of `ottla.spark.loop`. docs/decisions/0007-exactly-once-in-spark.md goes through the crashes.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from ottla.client.cluster import Cluster
from ottla.client.errors import ProducerFenced, TransactionLost, UnsupportedByBroker
from ottla.client.groups import group_offsets
from ottla.client.producer_settings import ProducerSettings
from ottla.client.transacting import (
    ProducerId,
    TransactionalOffset,
    commit_offsets_in_transaction,
    end_transaction,
    init_producer,
    transaction_version,
)
from ottla.client.transactions import (
    TransactionDescription,
    TransactionListing,
    describe_transaction,
    fence_producer,
    list_transactions,
)
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import LostTransaction
from ottla.spark.writing.transactions import (
    ONGOING,
    Decision,
    TaskTransaction,
    TransactionState,
    decided_state,
    driver_id,
    given_up_id,
    is_task_id,
    last_note,
    notes_group,
    read_head,
    read_notes,
    task_ids_pattern,
    write_notes,
)

AT_ONCE_MAX = 32

T = TypeVar("T")
R = TypeVar("R")


class TransactionsGone(OttlaError):
    """Transactions of this batch were aborted before it was decided: nothing is lost, the batch is written again."""


class DriverPart(NamedTuple):
    """What a driver hands to its tasks, and gets back with their messages."""

    producer: ProducerId
    version: int
    decided: Decision | None
    """The last decision, without its transactions: they are committed."""


async def take_over(settings: ProducerSettings, prefix: str) -> DriverPart:
    """Become the driver of this query: no older one can decide any more. What was decided is committed, strays end.

    In this order: once the driver's id is taken there is no decision under way, and the notes are the last ones.
    """
    cluster = shared_cluster(settings.client)
    version = await transaction_version(cluster, driver_id(prefix))
    producer = await init_producer(cluster, driver_id(prefix), settings.transaction_timeout_ms)
    decided = await read_decision(cluster, prefix)
    counted = {one.transactional_id(prefix): one for one in decided.transactions} if decided is not None else {}
    if decided is not None:
        await _finish(cluster, prefix, decided, version)
    await _abort_leftover_transactions(cluster, prefix, counted)
    return DriverPart(producer, version, None if decided is None else decided._replace(transactions=()))


async def give_up(settings: ProducerSettings, prefix: str, job: str) -> None:
    """Abort whatever the tasks of a failed job have left open, or will leave open: Spark does not wait for them.

    In this order: a task that did not see the note before it was done had its transaction open by then.
    """
    cluster = shared_cluster(settings.client)
    await init_producer(cluster, given_up_id(prefix, job), settings.transaction_timeout_ms)
    await _abort_leftover_transactions(cluster, prefix, ())


async def is_given_up(settings: ProducerSettings, prefix: str, job: str) -> bool:
    return await _describe(shared_cluster(settings.client), given_up_id(prefix, job)) is not None


async def _abort_leftover_transactions(cluster: Cluster, prefix: str, counted: Collection[str]) -> None:
    left = [one.transactional_id for one in await open_tasks(cluster, prefix) if one.transactional_id not in counted]
    await _each(left, lambda name: fence_producer(cluster, name))


async def _finish(cluster: Cluster, prefix: str, decision: Decision, version: int) -> None:
    """Commit what a decision left open, and notice what has been lost of it."""
    now = await _each(decision.transactions, lambda one: _describe(cluster, one.transactional_id(prefix)))
    found = [(one, decided_state(one, state)) for one, state in zip(decision.transactions, now, strict=True)]
    for one, where in found:
        if where is TransactionState.GONE:
            raise _lost(prefix, decision, one)
    await commit_decided(
        cluster, prefix, decision, [one for one, where in found if where is TransactionState.OPEN], version
    )


async def read_decision(cluster: Cluster, prefix: str) -> Decision | None:
    first = last_note(await _notes(cluster, prefix, 0))
    head = read_head(first) if first is not None else None
    if first is None or head is None:
        return None
    others = await _each(range(1, head.of), lambda index: _notes(cluster, prefix, index))
    return read_notes([first, *(last_note(notes) or "" for notes in others)])


async def _notes(cluster: Cluster, prefix: str, index: int) -> list[str]:
    return [committed.metadata for committed in (await group_offsets(cluster, notes_group(prefix, index))).values()]


async def open_tasks(cluster: Cluster, prefix: str) -> list[TransactionListing]:
    """Transactions of this query's tasks, of whatever driver, that nobody has ended."""
    try:
        found = await list_transactions(cluster, pattern=task_ids_pattern(prefix))
    except UnsupportedByBroker:
        found = await list_transactions(cluster)
    return [one for one in found if one.state == ONGOING and is_task_id(one.transactional_id, prefix)]


async def decide(
    settings: ProducerSettings, prefix: str, driver: DriverPart, decision: Decision, anchor: TopicPartition
) -> None:
    """Make these transactions the batch, for good. Fails if a younger driver is there; then nothing is decided."""
    cluster = shared_cluster(settings.client)
    await check_open(cluster, prefix, decision.transactions)
    for index, note in enumerate(write_notes(decision)):
        await commit_offsets_in_transaction(
            cluster, driver_id(prefix), driver.producer, notes_group(prefix, index),
            {anchor: TransactionalOffset(0, note)}, version=driver.version,
        )  # fmt: skip
    await end_transaction(cluster, driver_id(prefix), driver.producer, commit=True, version=driver.version)


async def check_open(cluster: Cluster, prefix: str, transactions: Iterable[TaskTransaction]) -> None:
    """Decided transactions must be committed, so only open ones are decided: some may have timed out by now."""
    expected = list(transactions)
    found = await _each(expected, lambda one: _describe(cluster, one.transactional_id(prefix)))
    for one, state in zip(expected, found, strict=True):
        holder = None if state is None else ProducerId(state.producer_id, state.producer_epoch)
        if state is None or state.state != ONGOING or holder != one.producer:
            raise TransactionsGone(
                f"the transaction of task {one.task} is not open any more: the batch took longer than "
                "kafka.transaction.timeout.ms, or another driver of this query is at work. Nothing of it was kept"
            )


async def _describe(cluster: Cluster, transactional_id: str) -> TransactionDescription | None:
    try:
        return await describe_transaction(cluster, transactional_id)
    except ApiError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return None


async def commit_decided(
    cluster: Cluster, prefix: str, decision: Decision, transactions: Sequence[TaskTransaction], version: int
) -> None:
    """Commit transactions that are decided; those that are committed already stay so."""

    async def commit(one: TaskTransaction) -> None:
        try:
            await end_transaction(cluster, one.transactional_id(prefix), one.producer, commit=True, version=version)
        except (ProducerFenced, TransactionLost) as error:
            raise _lost(prefix, decision, one) from error

    await _each(transactions, commit)


def _lost(prefix: str, decision: Decision, one: TaskTransaction) -> LostTransaction:
    return LostTransaction(
        f"batch {decision.batch_id} was decided, but the broker has aborted the transaction of its task {one.task} "
        f"({one.transactional_id(prefix)}) before it was committed: it was open for longer than "
        "kafka.transaction.timeout.ms. The records of that task are missing, the other tasks' are there. To go on "
        f"without them, delete the group `{notes_group(prefix, 0)}` and, in the checkpoint, write the batch into "
        "`commits`; to have them, write the batch into another topic from a copy of the checkpoint"
    )


async def abort_undecided(
    settings: ProducerSettings, prefix: str, driver: DriverPart, transactions: Sequence[TaskTransaction]
) -> None:
    """End what a failed batch left open, unless a younger driver is there: then it is that driver's affair."""
    cluster = shared_cluster(settings.client)
    try:
        # Taking the id anew makes sure that no decision is under way.
        await init_producer(cluster, driver_id(prefix), settings.transaction_timeout_ms, held=driver.producer)
    except (ProducerFenced, TransactionLost):
        return
    decided = await read_decision(cluster, prefix)
    counted = set() if decided is None else {one.producer for one in decided.transactions}
    left = [one for one in transactions if one.producer not in counted]
    await _each(left, lambda one: abort_by_epoch(cluster, settings, one.transactional_id(prefix), one.producer))


async def abort_by_epoch(
    cluster: Cluster, settings: ProducerSettings, transactional_id: str, producer: ProducerId
) -> None:
    """Abort a task's transaction by taking its id again, if nobody else has: so it never looks like one that ended in
    the epoch of a decided one (see `transactions.decided_state`)."""
    with contextlib.suppress(ProducerFenced, TransactionLost):
        await init_producer(cluster, transactional_id, settings.transaction_timeout_ms, held=producer)


async def commit_tasks(cluster: Cluster, prefix: str, transactions: Sequence[TaskTransaction], version: int) -> None:
    async def commit(one: TaskTransaction) -> None:
        await end_transaction(cluster, one.transactional_id(prefix), one.producer, commit=True, version=version)

    await _each(transactions, commit)


async def _each(items: Iterable[T], work: Callable[[T], Awaitable[R]]) -> list[R]:
    """All of them, some at a time: a batch may have thousands of tasks."""
    limit = asyncio.Semaphore(AT_ONCE_MAX)

    async def one(item: T) -> R:
        async with limit:
            return await work(item)

    return await asyncio.gather(*(one(item) for item in items))
