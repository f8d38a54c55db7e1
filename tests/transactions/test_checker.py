"""The checker finds every kind of anomaly where one was planted, and nothing in what a correct broker does."""

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.transactions.checker import (
    AbortedRead,
    Anomaly,
    Duplicate,
    InconsistentOffset,
    LostWrite,
    NonMonotonicPoll,
    NonMonotonicSend,
    PrecommittedRead,
    UnknownValue,
    Unseen,
    check,
    summary,
)
from tests.transactions.history import (
    Abort,
    AnyOperation,
    Assign,
    Begin,
    Commit,
    Crash,
    Outcome,
    Poll,
    Send,
    read_history,
    write_history,
)
from tests.transactions.model import INPUT, OUTPUT, Model

from ottla.model.names import TopicPartition

P = TopicPartition("input", 0)
COPY = TopicPartition("output", 0)
PRODUCER, OTHER, READER, PEEKER = 1, 2, 3, 4


class Script:
    """A history written down step by step."""

    def __init__(self) -> None:
        self.history: list[AnyOperation] = []
        self._now = itertools.count(1)

    def begin(self, transaction: int, *, process: int = PRODUCER) -> None:
        self._add(Begin(process=process, invoked=next(self._now), transaction=transaction))

    def send(
        self, transaction: int, value: int, offset: int | None, *, process: int = PRODUCER,
        partition: TopicPartition = P, source: int | None = None,
    ) -> None:  # fmt: skip
        send = Send(
            process=process, invoked=next(self._now), transaction=transaction, partition=partition, value=value,
            source=source, offset=offset,
        )  # fmt: skip
        self._add(send, Outcome.OK if offset is not None else Outcome.INFO)

    def commit(self, transaction: int, outcome: Outcome = Outcome.OK, *, process: int = PRODUCER) -> None:
        self._add(Commit(process=process, invoked=next(self._now), transaction=transaction), outcome)

    def abort(self, transaction: int) -> None:
        self._add(Abort(process=PRODUCER, invoked=next(self._now), transaction=transaction))

    def crash(self, process: int = PRODUCER) -> None:
        self._add(Crash(process=process, invoked=next(self._now)))

    def assign(self, process: int) -> None:
        self._add(Assign(process=process, invoked=next(self._now), partition=P))

    def poll(self, process: int, *read: tuple[int, int], partition: TopicPartition = P) -> int:
        """Reads given as (offset, value); returns when it was completed."""
        offsets, values = [offset for offset, _ in read], [value for _, value in read]
        poll = Poll(
            process=process, invoked=next(self._now), partition=partition, offsets=offsets, values=values,
            committed_only=process != PEEKER,
        )  # fmt: skip
        return self._add(poll)

    def transaction(self, number: int, *sent: tuple[int, int], process: int = PRODUCER) -> None:
        """One that commits, with what it sent as (value, offset)."""
        self.begin(number, process=process)
        for value, offset in sent:
            self.send(number, value, offset, process=process)
        self.commit(number, process=process)

    def _add(self, operation: AnyOperation, outcome: Outcome = Outcome.OK) -> int:
        operation.outcome = outcome
        operation.completed = next(self._now)
        self.history.append(operation)
        return operation.completed


@pytest.fixture
def script() -> Script:
    return Script()


def test_lost_write(script: Script) -> None:
    script.transaction(1, (10, 0), (11, 1), (12, 2))
    script.poll(READER, (0, 10), (1, 11))
    assert check(script.history) == [LostWrite(12, P, 2, 1)]


def test_part_of_a_transaction_whose_commit_was_never_answered_is_lost(script: Script) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    script.send(1, 11, 1)
    script.commit(1, Outcome.INFO)
    script.poll(READER, (0, 10))
    assert check(script.history) == [LostWrite(11, P, 1, 1)]


def test_unseen(script: Script) -> None:
    script.transaction(1, (10, 0), (11, 1), (12, 2))
    script.poll(READER, (0, 10), (1, 11), (2, 12))
    script.poll(OTHER, (0, 10), (2, 12))
    assert check(script.history) == [Unseen(OTHER, P, 1, 11, 0, 2)]


def test_read_uncommitted_must_see_what_was_aborted_too(script: Script) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    script.send(1, 11, 1)
    script.abort(1)
    script.transaction(2, (12, 3))
    script.poll(READER, (3, 12))
    script.poll(PEEKER, (0, 10), (3, 12))
    assert check(script.history) == [Unseen(PEEKER, P, 1, 11, 0, 3)]


def test_duplicate(script: Script) -> None:
    script.transaction(1, (10, 0))
    script.poll(READER, (0, 10), (2, 10))
    assert check(script.history) == [Duplicate(10, ((P, 0), (P, 2)))]


def test_acknowledged_at_another_offset_than_read(script: Script) -> None:
    script.transaction(1, (10, 0))
    script.poll(READER, (1, 10))
    assert Duplicate(10, ((P, 0), (P, 1))) in check(script.history)


def test_inconsistent_offset(script: Script) -> None:
    script.transaction(1, (10, 0), (11, 1))
    script.transaction(2, (12, 1), process=OTHER)
    script.poll(READER, (0, 10), (1, 11))
    script.poll(OTHER, (1, 12))
    assert check(script.history) == [InconsistentOffset(P, 1, (11, 12))]


@pytest.mark.parametrize("ending", ["abort acknowledged", "commit refused", "zombie refused"])
def test_aborted_read(script: Script, ending: str) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    if ending == "abort acknowledged":
        script.abort(1)
    elif ending == "commit refused":
        script.commit(1, Outcome.FAIL)
    else:
        script.crash()
        script.transaction(2, (11, 2), process=OTHER)
        script.poll(READER, (2, 11))
        script.assign(READER)
        script.commit(1, Outcome.FAIL)
    script.poll(READER, (0, 10))
    assert check(script.history) == [AbortedRead(READER, P, 0, 10, 1)]


def test_abort_after_a_commit_that_was_not_answered(script: Script) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    script.commit(1, Outcome.INFO)
    script.abort(1)
    script.poll(READER, (0, 10))
    assert check(script.history) == [AbortedRead(READER, P, 0, 10, 1)]


def test_precommitted_read(script: Script) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    read = script.poll(READER, (0, 10))
    script.commit(1)
    assert check(script.history) == [PrecommittedRead(READER, P, 0, 10, 1, read, read + 1)]


def test_read_of_a_transaction_that_nobody_asked_to_commit(script: Script) -> None:
    script.begin(1)
    script.send(1, 10, 0)
    script.crash()
    read = script.poll(READER, (0, 10))
    assert check(script.history) == [PrecommittedRead(READER, P, 0, 10, 1, read, None)]


def test_non_monotonic_send(script: Script) -> None:
    script.transaction(1, (10, 5), (11, 4))
    script.poll(READER, (4, 11), (5, 10))
    assert check(script.history) == [NonMonotonicSend(PRODUCER, P, (10, 11), (5, 4))]


@pytest.mark.parametrize("again", [0, 1])
def test_non_monotonic_poll(script: Script, again: int) -> None:
    script.transaction(1, (10, 0), (11, 1))
    script.poll(READER, (0, 10), (1, 11))
    script.poll(READER, (again, 10 + again))
    assert check(script.history) == [NonMonotonicPoll(READER, P, (1, again))]


def test_reading_again_after_an_assignment_is_no_anomaly(script: Script) -> None:
    script.transaction(1, (10, 0), (11, 1))
    script.poll(READER, (0, 10), (1, 11))
    script.assign(READER)
    script.poll(READER, (0, 10))
    assert check(script.history) == []


def test_a_call_that_is_told_of_an_assignment_returns_what_comes_after_it(script: Script) -> None:
    script.transaction(1, (10, 0), (11, 1), (12, 2))
    script.poll(READER, (0, 10), (1, 11), (2, 12))
    script.poll(OTHER, (0, 10))
    before = script.history[-1].invoked
    script.assign(OTHER)
    script.poll(OTHER, (2, 12))
    script.history[-1].invoked = before
    assert check(script.history) == []


def test_unknown_value(script: Script) -> None:
    script.transaction(1, (10, 0))
    script.poll(READER, (0, 10), (1, 99))
    assert check(script.history) == [UnknownValue(READER, P, 1, 99)]


def _copied(script: Script, copies: int) -> list[Anomaly]:
    script.transaction(1, (10, 0))
    script.poll(READER, (0, 10))
    for number in range(copies):
        script.begin(2 + number, process=OTHER)
        script.send(2 + number, 20 + number, 2 * number, process=OTHER, partition=COPY, source=10)
        script.commit(2 + number, process=OTHER)
    if copies:
        script.poll(READER, *((2 * number, 20 + number) for number in range(copies)), partition=COPY)
    return check(script.history, copied={"input": "output"})


def test_a_record_that_was_never_carried_over(script: Script) -> None:
    assert _copied(script, 0) == [LostWrite(10, P, 0, 1, "its copy")]


def test_a_record_carried_over_once(script: Script) -> None:
    assert _copied(script, 1) == []


def test_a_record_carried_over_twice(script: Script) -> None:
    assert _copied(script, 2) == [Duplicate(10, ((COPY, 0), (COPY, 2)))]


def test_summary_counts_and_shows(script: Script) -> None:
    script.transaction(1, *((value, value) for value in range(8)))
    script.poll(READER, (7, 7))
    text = summary(check(script.history), shown_max=2)
    assert text.startswith("LostWrite: 7\n")
    assert text.count("value=") == 2
    assert summary([]) == "no anomalies"


STEPS = st.integers(5, 120)
CALM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _history(seed: int, steps: int) -> list[AnyOperation]:
    return Model(random.Random(seed)).run(steps)


@CALM
@given(st.integers(0, 1 << 32), STEPS)
def test_a_correct_broker_shows_no_anomaly(seed: int, steps: int) -> None:
    history = _history(seed, steps)
    assert check(history, copied={INPUT: OUTPUT}) == []


def _seen(history: list[AnyOperation]) -> list[tuple[Poll, int]]:
    """Every record that a read_committed reader got: its poll and its place there."""
    return [
        (each, index)
        for each in history
        if isinstance(each, Poll) and each.committed_only
        for index in range(len(each.values))
    ]


def _committed(history: list[AnyOperation], *, heard: bool = True) -> list[Send]:
    """Acknowledged sends of transactions whose commit was acknowledged."""
    ended = {each.transaction for each in history if isinstance(each, Commit) and each.outcome is Outcome.OK}
    return [
        each
        for each in history
        if isinstance(each, Send) and each.transaction in ended and (each.outcome is Outcome.OK) is heard
    ]


def _forget(history: list[AnyOperation], value: int) -> list[AnyOperation]:
    """Nobody has read this value."""
    for poll in (each for each in history if isinstance(each, Poll)):
        keep = [index for index, each in enumerate(poll.values) if each != value]
        poll.offsets, poll.values = [poll.offsets[i] for i in keep], [poll.values[i] for i in keep]
    return [each for each in history if not isinstance(each, Poll) or each.values]


def _plant_loss(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    return _forget(history, chance.choice(_committed(history)).value)


def _plant_duplicate(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    poll, index = chance.choice(_seen(history))
    poll.offsets.insert(index + 1, 10_000)
    poll.values.insert(index + 1, poll.values[index])
    return history


def _plant_inconsistency(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    poll, index = chance.choice(_seen(history))
    others = [each for each in _committed(history) if each.value != poll.values[index]]
    assume(others)
    poll.values[index] = chance.choice(others).value
    return history


def _plant_aborted_read(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    sent = {each.transaction for each in history if isinstance(each, Send) and each.value in _values_read(history)}
    commits = [each for each in history if isinstance(each, Commit) and each.transaction in sent]
    chance.choice(commits).outcome = Outcome.FAIL
    return history


def _plant_precommitted_read(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    sent = {each.transaction for each in history if isinstance(each, Send) and each.value in _values_read(history)}
    commit = chance.choice([each for each in history if isinstance(each, Commit) and each.transaction in sent])
    commit.invoked = 1 << 40
    return history


def _values_read(history: list[AnyOperation]) -> set[int]:
    return {poll.values[index] for poll, index in _seen(history)}


def _plant_backward_poll(history: list[AnyOperation], chance: random.Random) -> list[AnyOperation]:
    poll, index = chance.choice(_seen(history))
    poll.offsets.insert(index, poll.offsets[index])
    poll.values.insert(index, poll.values[index])
    return history


PLANTS: list[tuple[type[Anomaly], Callable[[list[AnyOperation], random.Random], list[AnyOperation]]]] = [
    (LostWrite, _plant_loss),
    (Duplicate, _plant_duplicate),
    (InconsistentOffset, _plant_inconsistency),
    (AbortedRead, _plant_aborted_read),
    (PrecommittedRead, _plant_precommitted_read),
    (NonMonotonicPoll, _plant_backward_poll),
]


@pytest.mark.parametrize(("kind", "plant"), PLANTS, ids=[kind.__name__ for kind, _ in PLANTS])
@CALM
@given(st.integers(0, 1 << 32), st.integers(60, 120))
def test_an_anomaly_planted_anywhere_is_found(
    kind: type[Anomaly],
    plant: Callable[[list[AnyOperation], random.Random], list[AnyOperation]],
    seed: int,
    steps: int,
) -> None:
    history = _history(seed, steps)
    assume(_seen(history) and _committed(history))
    planted = plant(history, random.Random(seed))
    assert kind in {type(anomaly) for anomaly in check(planted, copied={INPUT: OUTPUT})}


def test_a_history_is_read_back_from_its_file(tmp_path: Path) -> None:
    history = _history(7, 60)
    path = tmp_path / "history.jsonl"
    write_history(path, history)
    assert list(read_history(path)) == history
