"""Every place where a driver can die between its tasks' writes and the end of a batch, without Spark around it.

A driver is what it has in memory: to kill it is to take another one. What counts is what a consumer then sees.
"""

import pytest
from tests.committed import values
from tests.spark.feeding import MakeTopic

from ottla.client.errors import ProducerFenced
from ottla.client.producer import TransactionPart
from ottla.client.producer_settings import ProducerSettings, producer_settings
from ottla.client.transacting import end_transaction, init_producer
from ottla.model.names import TopicPartition
from ottla.protocol.compression import Codec
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, encode_batch
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import LostTransaction
from ottla.spark.writing.commit import (
    DriverPart,
    TransactionsGone,
    abort_undecided,
    commit_decided,
    decide,
    give_up,
    is_given_up,
    open_tasks,
    read_decision,
    take_over,
)
from ottla.spark.writing.encode import UnfinishedBatch
from ottla.spark.writing.rows_to_records import produce
from ottla.spark.writing.transactions import Decision, TaskTransaction, task_id
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

QUERY = "3c5f6a2e"
TASKS = 3


class Query:
    """A streaming query as the broker sees it: drivers that come and go, and their tasks."""

    def __init__(self, bootstrap: str, topic: str, timeout_ms: int = 60_000) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.prefix = f"query-{topic}"
        self.settings: ProducerSettings = producer_settings(
            {"bootstrap.servers": bootstrap, "transaction.timeout.ms": str(timeout_ms)}
        )
        self.cluster = shared_cluster(self.settings.client)

    def driver(self) -> DriverPart:
        return loop.run(take_over(self.settings, self.prefix))

    def task(self, task: int, *written: str, generation: int = 1, attempt: int = 0) -> TaskTransaction:
        name = task_id(self.prefix, generation, task, attempt)
        producer = loop.run(init_producer(self.cluster, name, self.settings.transaction_timeout_ms))
        payload = bytes(encode_batch([NewRecord(None, value.encode(), 0) for value in written])[BATCH_OVERHEAD:])
        batch = UnfinishedBatch(self.topic, task % 2, len(written), 0, 0, payload, Codec.NONE)
        produce([[batch]], self.settings, TransactionPart(name, producer, 2))
        return TaskTransaction(task, attempt, generation, producer)

    def write(self, batch_id: int, tasks: int = TASKS, generation: int = 1) -> list[TaskTransaction]:
        return [self.task(task, f"{batch_id}.{task}", generation=generation) for task in range(tasks)]

    def decide(self, driver: DriverPart, batch_id: int, transactions: list[TaskTransaction]) -> Decision:
        decision = Decision(QUERY, batch_id, driver.producer, tuple(transactions))
        loop.run(decide(self.settings, self.prefix, driver, decision, TopicPartition(self.topic, 0)))
        return decision

    def finish(self, decision: Decision, transactions: list[TaskTransaction]) -> None:
        loop.run(commit_decided(self.cluster, self.prefix, decision, transactions, 2))

    def is_decided(self, driver: DriverPart, batch_id: int) -> bool:
        return driver.decided is not None and driver.decided[:2] == (QUERY, batch_id)

    def open_count(self) -> int:
        return len(loop.run(open_tasks(self.cluster, self.prefix)))

    @property
    def visible(self) -> list[str]:
        return values(self.bootstrap, self.topic)


@pytest.fixture
def query(broker: RunningBroker, make_topic: MakeTopic) -> Query:
    return Query(broker.bootstrap, make_topic("decided", partitions=2))


BATCH_0 = ["0.0", "0.1", "0.2"]


def test_an_ordinary_batch(query: Query) -> None:
    driver = query.driver()
    written = query.write(0)
    assert query.visible == []
    query.finish(query.decide(driver, 0, written), written)
    assert query.visible == BATCH_0
    assert query.is_decided(query.driver(), 0)


def test_killed_before_the_decision_the_batch_is_written_anew(query: Query) -> None:
    query.driver()
    query.write(0)
    following = query.driver()
    assert not query.is_decided(following, 0)
    assert query.open_count() == 0, "strays hold consumers up"
    written = query.write(0, generation=2)
    query.finish(query.decide(following, 0, written), written)
    assert query.visible == BATCH_0


@pytest.mark.parametrize("committed", range(TASKS + 1))
def test_killed_after_the_decision_the_next_driver_commits_the_rest(query: Query, committed: int) -> None:
    driver = query.driver()
    written = query.write(0)
    decision = query.decide(driver, 0, written)
    query.finish(decision, written[:committed])
    following = query.driver()
    assert query.is_decided(following, 0)
    assert query.visible == BATCH_0
    assert query.is_decided(query.driver(), 0), "and it stays so"


def test_the_same_ids_are_used_by_batch_after_batch(query: Query) -> None:
    for batch_id in range(3):
        driver = query.driver()
        written = query.write(batch_id)
        query.finish(query.decide(driver, batch_id, written), written)
    # A batch that fails after the ids were taken again must not make the one before look lost.
    query.driver()
    query.write(3)
    assert query.is_decided(query.driver(), 2)
    assert query.visible == [f"{batch}.{task}" for batch in range(3) for task in range(TASKS)]


def test_fewer_tasks_after_a_restart_leave_no_stray_behind(query: Query) -> None:
    query.driver()
    query.write(0, tasks=5)
    following = query.driver()
    written = query.write(0, tasks=1, generation=2)
    query.finish(query.decide(following, 0, written), written)
    assert query.open_count() == 0
    assert query.visible == ["0.0"]


def test_a_zombie_cannot_decide(query: Query) -> None:
    zombie = query.driver()
    lost = query.write(0)
    following = query.driver()
    with pytest.raises(TransactionsGone, match="not open any more"):
        query.decide(zombie, 0, lost)
    written = query.write(0, generation=2)
    # Even with transactions that are open it has no say: its own id belongs to another now.
    own = [query.task(0, "zombie", generation=3)]
    with pytest.raises(ProducerFenced):
        query.decide(zombie, 0, own)
    query.finish(query.decide(following, 0, written), written)
    query.driver()
    assert query.visible == BATCH_0


def test_a_zombie_that_decided_first_has_decided(query: Query) -> None:
    zombie = query.driver()
    written = query.write(0)
    decision = query.decide(zombie, 0, written)
    following = query.driver()
    assert query.is_decided(following, 0)
    query.finish(decision, written)  # it goes on, and changes nothing
    assert query.visible == BATCH_0


def test_the_attempt_that_does_not_count_stays_invisible(query: Query) -> None:
    driver = query.driver()
    slow = query.task(0, "0.0", attempt=0)
    twin = query.task(0, "0.0", attempt=1)
    query.finish(query.decide(driver, 0, [twin]), [twin])
    query.driver()
    assert query.visible == ["0.0"]
    assert query.open_count() == 0
    assert slow.producer != twin.producer


def test_a_transaction_that_timed_out_before_the_decision_stops_it(query: Query) -> None:
    driver = query.driver()
    written = query.write(0)
    one = written[1]
    name = one.transactional_id(query.prefix)
    loop.run(end_transaction(query.cluster, name, one.producer, commit=False, version=2))
    with pytest.raises(TransactionsGone, match="task 1 is not open any more"):
        query.decide(driver, 0, written)
    following = query.driver()
    assert not query.is_decided(following, 0)
    assert query.visible == []


@pytest.mark.parametrize("aborted", [0, 2])
def test_a_decided_transaction_that_the_broker_aborted_is_noticed_again_and_again(query: Query, aborted: int) -> None:
    driver = query.driver()
    written = query.write(0)
    decision = query.decide(driver, 0, written)
    one = written[aborted]
    # What a timeout does to it: aborted, in the next epoch.
    loop.run(end_transaction(query.cluster, one.transactional_id(query.prefix), one.producer, commit=False, version=2))
    with pytest.raises(LostTransaction, match=f"task {aborted}"):
        query.finish(decision, written)
    for _ in range(2):
        with pytest.raises(LostTransaction, match=rf"batch 0 .*task {aborted} .*kafka\.transaction\.timeout\.ms"):
            query.driver()


def test_a_failed_batch_aborts_what_is_not_decided(query: Query) -> None:
    driver = query.driver()
    written = query.write(0)
    loop.run(abort_undecided(query.settings, query.prefix, driver, written))
    assert query.open_count() == 0
    assert query.visible == []


def test_a_failed_commit_does_not_abort_what_is_decided(query: Query) -> None:
    driver = query.driver()
    written = query.write(0)
    query.decide(driver, 0, written)
    loop.run(abort_undecided(query.settings, query.prefix, driver, written))
    assert query.is_decided(query.driver(), 0)
    assert query.visible == BATCH_0


def test_a_zombie_that_aborts_disturbs_nobody(query: Query) -> None:
    zombie = query.driver()
    lost = query.write(0)
    following = query.driver()
    written = query.write(0, generation=2)
    loop.run(abort_undecided(query.settings, query.prefix, zombie, lost))
    query.finish(query.decide(following, 0, written), written)
    assert query.visible == BATCH_0


def test_a_task_that_ends_after_its_job_has_failed_finds_that_out(query: Query) -> None:
    query.task(0, "a")
    assert not loop.run(is_given_up(query.settings, query.prefix, "job"))
    loop.run(give_up(query.settings, query.prefix, "job"))
    assert query.open_count() == 0
    assert loop.run(is_given_up(query.settings, query.prefix, "job"))
    assert not loop.run(is_given_up(query.settings, query.prefix, "the next job"))
    assert query.visible == []


def test_more_tasks_than_a_note_holds(query: Query) -> None:
    driver = query.driver()
    written = [query.task(0, "0.0")]
    # The note is what is long, not the work: the same transaction stands for all.
    decision = Decision(QUERY, 0, driver.producer, tuple(written) * 400)
    loop.run(decide(query.settings, query.prefix, driver, decision, TopicPartition(query.topic, 0)))
    assert loop.run(read_decision(query.cluster, query.prefix)) == decision


def test_a_new_checkpoint_under_an_old_name_is_another_query(query: Query) -> None:
    driver = query.driver()
    written = query.write(7)
    query.finish(query.decide(driver, 7, written), written)
    following = query.driver()
    assert following.decided is not None
    again = [query.task(0, "new", generation=2)]
    decision = Decision("another", 0, following.producer, tuple(again))
    loop.run(decide(query.settings, query.prefix, following, decision, TopicPartition(query.topic, 1)))
    last = query.driver().decided
    assert last is not None
    assert last[:2] == ("another", 0)
    assert "new" in query.visible


def test_a_real_timeout_is_noticed(broker: RunningBroker, make_topic: MakeTopic) -> None:
    query = Query(broker.bootstrap, make_topic("timeout", partitions=2), timeout_ms=1)
    driver = query.driver()
    query.write(0)
    wait_until(lambda: query.open_count() == 0, "the broker ends what is too old", seconds=60)
    assert driver.decided is None
    assert query.visible == []
