"""Whether a stage ran twice, as Spark's listeners hear of it: late, in order, and sometimes not at all."""

from collections.abc import Sequence
from typing import NamedTuple

import pytest

from ottla.spark.job_history import _was_retried


class Info(NamedTuple):
    """What Java's SparkStageInfo tells."""

    attempt: int
    tasks: int
    completed: int

    def currentAttemptId(self) -> int:
        return self.attempt

    def numTasks(self) -> int:
        return self.tasks

    def numCompletedTasks(self) -> int:
        return self.completed


class Tracker:
    """Knows more with every question."""

    def __init__(self, known: Sequence[Info | None]) -> None:
        self._known = list(known)

    def getStageInfo(self, stage: int) -> Info | None:
        assert stage == 7
        return self._known.pop(0) if len(self._known) > 1 else self._known[0]


UNDER_WAY, DONE = Info(0, 2, 1), Info(0, 2, 2)


@pytest.mark.parametrize(
    ("known", "retried"),
    [
        ([DONE], False),
        ([None, None, UNDER_WAY, UNDER_WAY, DONE], False),
        ([Info(1, 2, 2)], True),
        ([None, UNDER_WAY, Info(1, 2, 0)], True),
    ],
)
def test_it_is_waited_for_until_it_is_known(known: Sequence[Info | None], retried: bool) -> None:
    assert _was_retried(Tracker(known), 7) is retried


@pytest.mark.parametrize("known", [None, UNDER_WAY])
def test_a_stage_that_nobody_knows_the_end_of_cannot_vouch_for_itself(known: Info | None) -> None:
    assert _was_retried(Tracker([known]), 7, seconds_max=0.02)
