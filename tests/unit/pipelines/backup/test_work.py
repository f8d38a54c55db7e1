"""Tasks: tried again where that can help, told as what they say, and stopped when one of them fails."""

import threading
from dataclasses import dataclass, field

import pytest

from ottla.client.errors import ConnectionLost
from ottla.pipelines.backup.manifest import BackupProblem, DamagedBackup
from ottla.pipelines.backup.work import ATTEMPTS, Here, run_all, side_by_side
from ottla.protocol.errors import CorruptBatch


@dataclass
class Flaky:
    """Fails so often with an error, then succeeds."""

    error: Exception
    failures: int
    calls: list[int] = field(default_factory=list)

    def __call__(self, task: int) -> int:
        self.calls.append(task)
        if len(self.calls) <= self.failures:
            raise self.error
        return task * 2


def test_what_passes_is_tried_again() -> None:
    work = Flaky(ConnectionLost("away"), ATTEMPTS - 1)
    assert Here().one(work, 4) == 8
    with pytest.raises(BackupProblem, match="away"):
        Here().one(Flaky(OSError("away"), ATTEMPTS), 4)


@pytest.mark.parametrize("error", [DamagedBackup("broken"), CorruptBatch("broken"), BackupProblem("broken")])
def test_what_does_not_is_told_at_once(error: Exception) -> None:
    work = Flaky(error, ATTEMPTS - 1)
    with pytest.raises(BackupProblem, match="broken") as caught:
        Here().one(work, 4)
    assert len(work.calls) == 1
    assert isinstance(caught.value, DamagedBackup) == (type(error) is not BackupProblem)


def test_all_results_come_whatever_their_order() -> None:
    assert sorted(run_all(Here(), Flaky(OSError(), 0), range(50))) == [number * 2 for number in range(50)]
    assert list(run_all(Here(), Flaky(OSError(), 0), [])) == []


def test_a_failure_tells_the_others_to_stop() -> None:
    stopped = threading.Event()

    def endless(ending: threading.Event) -> int:
        if ending.wait(60):
            stopped.set()
        return 0

    def fails(_: threading.Event) -> int:
        raise BackupProblem("broken")

    with pytest.raises(BackupProblem, match="broken"):
        list(side_by_side(Here(), [endless, fails]))
    assert stopped.is_set()
