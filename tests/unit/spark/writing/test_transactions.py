"""The sink's notes: whatever is decided can be read back, and what is not ours, or broken, is seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.transacting import ProducerId
from ottla.client.transactions import TransactionDescription
from ottla.spark.writing.progress_notes import BatchNote, last_batch, read_note
from ottla.spark.writing.transactions import (
    NOTE_BYTES_MAX,
    BadNote,
    Decision,
    TaskTransaction,
    TransactionState,
    decided_state,
    default_prefix,
    driver_id,
    is_task_id,
    last_note,
    notes_group,
    read_head,
    read_notes,
    task_id,
    write_notes,
)

producers = st.builds(ProducerId, st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1))
transactions = st.builds(
    TaskTransaction, st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1), producers
)
queries = st.uuids().map(str)
decisions = st.builds(
    Decision, queries, st.integers(0, 2**63 - 1), producers, st.lists(transactions, max_size=400).map(tuple)
)


@given(decisions)
def test_a_decision_survives_its_notes(decision: Decision) -> None:
    notes = write_notes(decision)
    assert all(len(note.encode()) <= NOTE_BYTES_MAX for note in notes)
    assert read_notes(notes) == decision


def test_many_tasks_need_several_notes() -> None:
    one = TaskTransaction(1, 0, 5, ProducerId(9, 0))
    decision = Decision("q", 3, ProducerId(1, 1), (one,) * 1000)
    notes = write_notes(decision)
    assert len(notes) == 7
    assert read_notes(notes) == decision


@given(decisions, decisions)
def test_notes_of_two_decisions_are_not_mixed(one: Decision, other: Decision) -> None:
    notes = write_notes(one._replace(transactions=(TaskTransaction(1, 0, 5, ProducerId(9, 0)),) * 300))
    others = write_notes(other._replace(batch_id=one.batch_id ^ 1, transactions=()))
    with pytest.raises(BadNote, match="do not belong together"):
        read_notes([notes[0], *others])
    with pytest.raises(BadNote, match="do not belong together"):
        read_notes(notes[:1])


def test_the_youngest_note_counts_whatever_its_batch() -> None:
    old, young = (write_notes(Decision(query, batch, driver, ()))[0] for query, batch, driver in (
        ("before", 57, ProducerId(4, 90)), ("after", 0, ProducerId(4, 91)),
    ))  # fmt: skip
    assert last_note([young, "someone else's", old]) == young
    assert last_note([write_notes(Decision("q", 1, ProducerId(5, 0), ()))[0], young]) != young
    assert last_note([]) is None
    assert last_note(["", "metadata of a consumer"]) is None


@pytest.mark.parametrize("rest", ["", " q x 1.2 0/1 ", " q 1 1.2 0 ", " q 1 12 0/1 "])
def test_a_broken_note_is_an_error_not_a_missing_one(rest: str) -> None:
    with pytest.raises(BadNote, match="does not parse"):
        read_head(f"ottla-decision{rest}")


@pytest.mark.parametrize("data", ["!", "AAAA"])
def test_broken_entries_are_an_error(data: str) -> None:
    with pytest.raises(BadNote, match="does not parse"):
        read_notes([f"ottla-decision q 1 1.2 0/1 {data}"])


@pytest.mark.parametrize(
    ("producer_id", "epoch", "state", "expected"),
    [
        (7, 3, "Ongoing", TransactionState.OPEN),
        (7, 4, "CompleteCommit", TransactionState.DONE),
        (7, 4, "PrepareCommit", TransactionState.DONE),
        (7, 3, "CompleteCommit", TransactionState.DONE),  # ended as transaction version 1 does
        (7, 3, "PrepareCommit", TransactionState.DONE),
        (7, 4, "CompleteAbort", TransactionState.GONE),  # its time was up
        (7, 4, "PrepareAbort", TransactionState.GONE),
        (7, 4, "Empty", TransactionState.DONE),  # taken by a later batch, from here on
        (7, 4, "Ongoing", TransactionState.DONE),
        (7, 5, "CompleteAbort", TransactionState.DONE),
        (8, 0, "CompleteAbort", TransactionState.DONE),  # the epochs were used up since
    ],
)
def test_where_a_decided_transaction_stands(
    producer_id: int, epoch: int, state: str, expected: TransactionState
) -> None:
    one = TaskTransaction(0, 0, 0, ProducerId(7, 3))
    now = TransactionDescription("x", 1, producer_id, epoch, state, 1000, None, [])
    assert decided_state(one, now) is expected


def test_an_id_that_is_forgotten_was_at_rest() -> None:
    assert decided_state(TaskTransaction(0, 0, 0, ProducerId(7, 3)), None) is TransactionState.DONE


def test_names() -> None:
    assert task_id("p.q", 5, 3, 1) == "p.q.task.5.3.1"
    assert is_task_id("p.q.task.5.3.1", "p.q")
    assert not is_task_id("pxq.task.5.3.1", "p.q")
    assert not is_task_id("p.q.task.5.3.1.task.1.1.1", "p.q")
    assert not is_task_id(driver_id("p.q"), "p.q")
    assert [notes_group("p", index) for index in range(3)] == ["p", "p.1", "p.2"]


def test_the_name_of_a_query_follows_from_its_checkpoint() -> None:
    name = default_prefix("s3://bucket/check points/orders/")
    assert name.startswith("ottla-sink-orders-")
    assert name == default_prefix("s3://bucket/check points/orders")
    assert name != default_prefix("s3://other/check points/orders")
    assert default_prefix("/tmp/ü ?").startswith("ottla-sink----")


@given(queries, st.integers(0, 2**63 - 1))
def test_batch_notes_can_be_read_back(query: str, batch_id: int) -> None:
    assert read_note(str(BatchNote(query, batch_id))) == BatchNote(query, batch_id)


def test_only_notes_of_the_same_query_count() -> None:
    notes = [str(BatchNote("a", 5)), str(BatchNote("b", 9)), str(BatchNote("a", 4)), "", "other", "ottla-batch a x"]
    assert last_batch(notes, "a") == 5
    assert last_batch(notes, "b") == 9
    assert last_batch(notes, "c") is None
