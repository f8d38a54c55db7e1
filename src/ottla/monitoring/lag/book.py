"""Everything that is known of the groups of one cluster, and how they are judged. Pure: readings and `now` come in."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.model.names import TopicPartition
from ottla.monitoring.lag.rules import Judged, Rules, Status, judge, judge_group
from ottla.monitoring.lag.seconds import caught_up_seconds, waiting_seconds
from ottla.monitoring.lag.window import Commit, Commits, Ends
from ottla.monitoring.readings import GroupReading, Owner, Reading

GROUPS_AT_ONCE = 50


class PartitionLag(NamedTuple):
    topic: str
    partition: int
    owner: Owner | None
    status: Status
    start: Commit | None
    end: Commit | None
    current_lag: int
    complete: float
    waiting_s: float | None
    """Age of the oldest unread record; None if it is older than the window, unless a record said it."""
    caught_up_s: float | None


class GroupLag(NamedTuple):
    group: str
    status: Status
    complete: float
    partitions: tuple[PartitionLag, ...]
    max_lag: PartitionLag | None
    total_lag: int
    state: str
    members: int

    @property
    def bad(self) -> tuple[PartitionLag, ...]:
        return tuple(each for each in self.partitions if each.status > Status.OK)


class _Group:
    __slots__ = ("commits", "last_commit_ms", "members", "owners", "state")

    def __init__(self) -> None:
        self.commits: dict[TopicPartition, Commits] = {}
        self.owners: Mapping[TopicPartition, Owner] = {}
        self.last_commit_ms = 0
        self.state = ""
        self.members = 0


class LagBook:
    """`note` takes a reading; `group` judges."""

    def __init__(self, rules: Rules, *, allow: str = "", deny: str = "") -> None:
        """`allow` and `deny` are patterns of group names; empty means all, and none."""
        self.rules = rules
        self.ready = False
        """Whether anything was noted yet."""
        self._allow = re.compile(allow) if allow else None
        self._deny = re.compile(deny) if deny else None
        self._ends: dict[TopicPartition, Ends] = {}
        self._topics: dict[str, int] = {}
        self._groups: dict[str, _Group] = {}
        self._forgotten: dict[str, dict[TopicPartition, int]] = {}
        """Groups that somebody wants forgotten, with what they had committed then."""
        self._ages_ms: dict[tuple[TopicPartition, int], int] = {}
        """When the record at an offset was written, where one was looked at."""

    # Readings

    def wants(self, group: str) -> bool:
        """Burrow's patterns match anywhere in a name unless they say `^` and `$`."""
        if self._allow is not None and not self._allow.search(group):
            return False
        return self._deny is None or not self._deny.search(group)

    def note(self, reading: Reading, now_ms: int) -> None:
        for _ in self.noting(reading, now_ms):
            pass

    def noting(self, reading: Reading, now_ms: int) -> Iterator[None]:
        """The same with pauses, in which somebody else may do something: thousands of groups take a while."""
        self._note_topics(reading)
        for partition, offset in reading.ends.items():
            ends = self._ends.get(partition)
            if ends is None:
                ends = self._ends[partition] = Ends(self.rules.intervals)
            ends.add(offset, now_ms)
        yield
        for position, (name, found) in enumerate(reading.groups.items()):
            if self.wants(name) and not self._stays_forgotten(name, found):
                self._note_group(self._groups.setdefault(name, _Group()), found, now_ms)
            if position % GROUPS_AT_ONCE == GROUPS_AT_ONCE - 1:
                yield
        for name in [*self._groups]:
            silent = self._groups[name].last_commit_ms + self.rules.expire_group_ms < now_ms
            if silent or (reading.whole and name not in reading.groups):
                del self._groups[name]
        if reading.whole:
            self._forgotten = {name: each for name, each in self._forgotten.items() if name in reading.groups}
        self.ready = True

    def _note_topics(self, reading: Reading) -> None:
        if not reading.topics:
            return
        self._topics = dict(reading.topics)
        gone = [each for each in self._ends if each.partition >= self._topics.get(each.topic, 0)]
        for partition in gone:
            del self._ends[partition]

    def _note_group(self, group: _Group, found: GroupReading, now_ms: int) -> None:
        """A commit is noted when its offset has changed, and at every look while a member owns the partition.

        A member that lives, owns a partition and commits the offset that it had is what Burrow calls stalled; clients
        do not tell brokers of a commit that would change nothing, so the owner's presence stands for it.
        """
        group.owners, group.state, group.members = found.owners, found.state, found.members
        for partition in [each for each in group.commits if each not in found.commits]:
            del group.commits[partition]
        for partition, offset in found.commits.items():
            ends = self._ends.get(partition)
            if ends is None:
                continue  # of a topic that is gone, or whose leader does not answer
            ring = group.commits.get(partition)
            if ring is None:
                ring = group.commits[partition] = Commits(self.rules.intervals, self.rules.min_distance_ms)
            if not ring or ring.last.offset != offset or partition in found.owners:
                ring.add(offset, now_ms, now_ms, ends.last.offset)
                group.last_commit_ms = now_ms

    def note_age(self, partition: TopicPartition, offset: int, written_ms: int) -> None:
        self._ages_ms[partition, offset] = written_ms

    def without_age(self, judged: Iterable[GroupLag]) -> list[tuple[TopicPartition, int]]:
        """Oldest unread records that were written before the window began: only they themselves can tell their age.

        Ages of records that were read since are forgotten.
        """
        unread = {
            (TopicPartition(each.topic, each.partition), each.end.offset): each.waiting_s is None
            for group in judged
            for each in group.partitions
            if each.current_lag > 0 and each.end is not None
        }
        self._ages_ms = {key: age for key, age in self._ages_ms.items() if key in unread}
        return [key for key, is_wanted in unread.items() if is_wanted]

    def forget(self, group: str) -> bool:
        """Until it commits again, or has members; False if it was not known."""
        found = self._groups.pop(group, None)
        if found is not None:
            self._forgotten[group] = {partition: ring.last.offset for partition, ring in found.commits.items()}
        return found is not None

    def _stays_forgotten(self, name: str, found: GroupReading) -> bool:
        if name not in self._forgotten:
            return False
        had = self._forgotten[name]
        if not found.owners and all(found.commits.get(partition) == offset for partition, offset in had.items()):
            return True
        del self._forgotten[name]
        return False

    # Answers

    @property
    def groups(self) -> list[str]:
        return sorted(self._groups)

    @property
    def topics(self) -> list[str]:
        return sorted(self._topics)

    def ends(self, topic: str) -> list[int] | None:
        """The last known end of each partition of a topic, 0 where none is known; None for a topic that is not."""
        count = self._topics.get(topic)
        if count is None:
            return None
        rings = (self._ends.get(TopicPartition(topic, number)) for number in range(count))
        return [ring.last.offset if ring else 0 for ring in rings]

    def readers(self, topic: str) -> list[str]:
        """Groups that have committed offsets of a topic."""
        return [name for name in self.groups if any(each.topic == topic for each in self._groups[name].commits)]

    def commits(self, group: str) -> dict[TopicPartition, tuple[tuple[Commit, ...], Owner | None, int]] | None:
        """The windows of a group, with owner and lag; None for a group that is not known."""
        found = self._groups.get(group)
        if found is None:
            return None
        return {
            partition: (ring.all, found.owners.get(partition), self._current_lag(partition, ring))
            for partition, ring in sorted(found.commits.items())
        }

    def group(self, name: str, now_ms: int) -> GroupLag | None:
        """A group judged now; None for one that is not known."""
        found = self._groups.get(name)
        if found is None:
            return None
        partitions = tuple(self._lags(name, now_ms))
        status, complete = judge_group(Judged(each.status, each.complete) for each in partitions)
        most = max(partitions, key=lambda each: each.current_lag, default=None)
        total = sum(each.current_lag for each in partitions)
        return GroupLag(name, status, complete, partitions, most, total, found.state, found.members)

    def _current_lag(self, partition: TopicPartition, ring: Commits) -> int:
        ends = self._ends.get(partition)
        return max(0, ends.last.offset - ring.last.offset) if ends and ring else 0

    def _lags(self, name: str, now_ms: int) -> list[PartitionLag]:
        found = self._groups[name]
        lags = []
        for partition, ring in sorted(found.commits.items()):
            commits = ring.all
            ring_of_ends = self._ends.get(partition)
            ends = ring_of_ends.all if ring_of_ends else ()
            lag = self._current_lag(partition, ring)
            status, complete = judge(commits, [end.offset for end in ends], lag, now_ms, self.rules)
            last = commits[-1] if commits else None
            waiting = waiting_seconds(last.offset, ends, now_ms) if last is not None else None
            if waiting is None and last is not None and (partition, last.offset) in self._ages_ms:
                waiting = max(0.0, (now_ms - self._ages_ms[partition, last.offset]) / 1000)
            lags.append(
                PartitionLag(
                    partition.topic,
                    partition.partition,
                    found.owners.get(partition),
                    status,
                    commits[0] if commits else None,
                    last,
                    lag,
                    complete,
                    waiting,
                    caught_up_seconds(commits, ends, lag),
                )
            )
        return lags
