"""Burrow's rules: is a consumer in trouble? Decided from a window of commits and log ends, without thresholds. Pure.

The first rule that applies decides:

    no commits, or fewer than `minimum_complete` of the window               OK
    the lag now is allowed                                                   OK
    silent for longer than the window spans, and not at the end of late      STOP
    a commit below the one before it, and that one not reached again         REWIND
    the lag was allowed at one of the commits                                OK
    every commit has the same offset                                         STALL
    the lag of no commit is below that of the one before                     WARN
    otherwise                                                                OK
"""

import itertools
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from ottla.monitoring.lag.window import Commit


class Status(IntEnum):
    """From good to bad; the numbers are Burrow's, which dashboards compare with."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    """It reads, and falls behind."""
    ERR = 3
    """Of a group only: at least one partition is STOP, STALL or REWIND."""
    STOP = 4
    """It does not commit any more."""
    STALL = 5
    """It lives and commits, and does not move."""
    REWIND = 6
    """It went back, and has not caught up with where it was."""


class Rules(NamedTuple):
    intervals: int = 10
    """How many commits of a group, and ends of a partition, are looked at."""
    min_distance_ms: int = 0
    """Commits closer than this count as one."""
    minimum_complete: float = 0.0
    """What share of the window must be there for a judgement other than OK."""
    allowed_lag: int = 0
    expire_group_ms: int = 7 * 24 * 3600 * 1000
    """A group that is silent for so long is forgotten."""


class Judged(NamedTuple):
    status: Status
    complete: float
    """How much of the window there is: 1 when it is full."""


def judge(commits: Sequence[Commit], ends: Sequence[int], current_lag: int, now_ms: int, rules: Rules) -> Judged:
    """One partition of a group; `ends` are the last ends of its log."""
    complete = len(commits) / rules.intervals
    if not commits or complete < rules.minimum_complete:
        return Judged(Status.OK, complete)
    return Judged(_status(commits, ends, current_lag, now_ms, rules.allowed_lag), complete)


def _status(commits: Sequence[Commit], ends: Sequence[int], current_lag: int, now_ms: int, allowed: int) -> Status:
    if current_lag <= allowed:
        return Status.OK
    if _silent(commits, now_ms) and not any(end <= commits[-1].offset for end in ends):
        return Status.STOP
    if _rewound(commits):
        return Status.REWIND
    lags = [commit.lag for commit in commits if commit.lag is not None]
    if any(lag <= allowed for lag in lags):
        return Status.OK
    if all(commit.offset == commits[0].offset for commit in commits):
        return Status.STALL
    if all(later >= earlier for earlier, later in itertools.pairwise(lags)):
        return Status.WARN
    return Status.OK


def _silent(commits: Sequence[Commit], now_ms: int) -> bool:
    first, last = commits[0].timestamp_ms, commits[-1].timestamp_ms
    return now_ms - last > last - first


def _rewound(commits: Sequence[Commit]) -> bool:
    """Only the first step back of the window counts: a later one comes into its own when this one has left it."""
    for position in range(1, len(commits)):
        before = commits[position - 1].offset
        if commits[position].offset < before:
            return all(commit.offset < before for commit in commits[position:])
    return False


def judge_group(partitions: Iterable[Judged]) -> Judged:
    """The worst of its partitions, but never worse than ERR; complete is the share of full windows."""
    found = list(partitions)
    worst = max((each.status for each in found), default=Status.OK)
    full = sum(each.complete >= 1.0 for each in found)
    return Judged(min(worst, Status.ERR), full / len(found) if found else 0.0)
