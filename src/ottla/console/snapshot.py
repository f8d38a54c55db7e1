"""What the pages show of a cluster, made once from each look and then only read. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.model.names import TopicPartition
from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.figures import caught_up_s, oldest_s
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.looking import Look
from ottla.monitoring.readings import PartitionPlace

RIPE_LOOKS = 10
"""As many as Burrow's window has."""


class Directory(NamedTuple):
    broker: int
    path: str
    error: str
    total_bytes: int
    """-1 where the broker does not tell."""
    free_bytes: int
    replicas_bytes: int


class Disks(NamedTuple):
    """What brokers said of their log directories, which is asked for less often than the rest."""

    directories: tuple[Directory, ...] = ()
    sizes: Mapping[int, Mapping[TopicPartition, int]] = {}
    """Bytes of each partition, by broker."""
    known: bool = False

    def size_if_told(self, at: TopicPartition, broker: int | None) -> int | None:
        return None if broker is None else self.sizes.get(broker, {}).get(at)

    def size(self, at: TopicPartition, broker: int | None) -> int:
        return self.size_if_told(at, broker) or 0

    def largest(self, at: TopicPartition) -> int:
        """Its size on the broker that has most of it."""
        return max((own.get(at, 0) for own in self.sizes.values()), default=0)


class TopicRow(NamedTuple):
    name: str
    internal: bool
    partitions: int
    replication: int
    end_offsets: int
    """All of its partitions together: how many records it was ever given, about."""
    size_bytes: int | None
    """On the leaders."""
    per_second: float | None
    under_replicated: int
    offline: int
    groups: int


class GroupRow(NamedTuple):
    group: str
    state: str
    status: str
    worst: str
    certain: bool
    """Whether there were enough looks to judge: after the first, everybody who is behind seems to stand still."""
    lag: int
    waiting_s: float | None
    caught_up_s: float | None
    members: int
    topics: tuple[str, ...]


class BrokerRow(NamedTuple):
    broker: int
    address: str
    rack: str
    controller: bool
    alive: bool
    leaders: int
    preferred: int
    """Partitions that it leads if all goes well: those where it is the first replica."""
    replicas: int
    out_of_sync: int
    size_bytes: int
    total_bytes: int
    free_bytes: int


class Health(NamedTuple):
    """In one line: is anything wrong?"""

    good: bool
    words: tuple[str, ...]


class Snapshot(NamedTuple):
    taken_ms: int
    number: int
    cluster_id: str
    controller_id: int
    look: Look
    brokers: tuple[BrokerRow, ...]
    topics: tuple[TopicRow, ...]
    groups: tuple[GroupRow, ...]
    judged: Mapping[str, GroupLag]
    readers: Mapping[str, tuple[str, ...]]
    """Groups by the topics that they have committed offsets of."""
    numbers: Mapping[str, tuple[int, ...]]
    """Partitions by topic."""
    disks: Disks
    health: Health
    per_second: float | None


def make(
    look: Look,
    judged: Sequence[GroupLag],
    disks: Disks,
    before: "tuple[Mapping[str, int], float] | None",
    now_s: float,
    number: int,
) -> Snapshot:
    """`before`: where the logs of each topic ended at the look before, and how many seconds ago that was."""
    by_topic: dict[str, list[tuple[int, PartitionPlace]]] = {}
    for (topic, partition), place in look.places.items():
        by_topic.setdefault(topic, []).append((partition, place))
    readers: dict[str, list[str]] = {}
    for group in judged:
        for topic in dict.fromkeys(each.topic for each in group.partitions):
            readers.setdefault(topic, []).append(group.group)
    ends = totals_of(look.reading.ends)
    topics = tuple(
        _topic_row(topic, by_topic[topic], look, ends, disks, before, len(readers.get(topic, ())))
        for topic in sorted(by_topic)
    )
    brokers = _broker_rows(look, disks)
    ripe = number >= RIPE_LOOKS
    speeds = [row.per_second for row in topics if row.per_second is not None]
    return Snapshot(
        int(now_s * 1000),
        number,
        look.cluster_id,
        look.controller_id,
        look,
        brokers,
        topics,
        tuple(sorted((_group_row(group, certain=ripe) for group in judged), key=lambda row: row.group)),
        {group.group: group for group in judged},
        {topic: tuple(found) for topic, found in readers.items()},
        {topic: tuple(sorted(number for number, _ in found)) for topic, found in by_topic.items()},
        disks,
        health(look, brokers, judged if ripe else (), disks),
        sum(speeds) if speeds else None,
    )


def only(found: Snapshot, sees: Callable[[str], bool]) -> Snapshot:
    """What is left for somebody who sees some topics alone; groups that read nothing else are left out."""
    topics = {topic for topic in found.numbers if sees(topic)}
    places = {at: place for at, place in found.look.places.items() if at.topic in topics}
    ends = {at: end for at, end in found.look.reading.ends.items() if at.topic in topics}
    judged = {}
    for name, group in found.judged.items():
        own = tuple(each for each in group.partitions if each.topic in topics)
        if own:
            most = max(own, key=lambda each: each.current_lag)
            total = sum(each.current_lag for each in own)
            judged[name] = group._replace(partitions=own, max_lag=most, total_lag=total)
    rows = tuple(row for row in found.topics if row.name in topics)
    speeds = [row.per_second for row in rows if row.per_second is not None]
    return found._replace(
        look=found.look._replace(places=places, reading=found.look.reading._replace(ends=ends)),
        topics=rows,
        groups=tuple(_group_row(judged[row.group], certain=row.certain) for row in found.groups if row.group in judged),
        judged=judged,
        readers={
            topic: tuple(g for g in names if g in judged) for topic, names in found.readers.items() if topic in topics
        },
        numbers={topic: numbers for topic, numbers in found.numbers.items() if topic in topics},
        per_second=sum(speeds) if speeds else None,
    )


def totals_of(ends: Mapping[TopicPartition, int]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for (topic, _), end in ends.items():
        totals[topic] += end
    return dict(totals)


def _topic_row(
    topic: str,
    places: Sequence[tuple[int, PartitionPlace]],
    look: Look,
    ends: Mapping[str, int],
    disks: Disks,
    before: "tuple[Mapping[str, int], float] | None",
    groups: int,
) -> TopicRow:
    end = ends.get(topic, 0)
    size: int | None = None
    if disks.known:
        size = sum(disks.size(TopicPartition(topic, number), place.leader) for number, place in places)
    speed: float | None = None
    if before is not None and before[1] > 0 and topic in before[0]:
        speed = max(0.0, (end - before[0][topic]) / before[1])
    return TopicRow(
        topic,
        topic in look.internal,
        len(places),
        min((len(place.replicas) for _, place in places), default=0),
        end,
        size,
        speed,
        sum(len(place.in_sync) < len(place.replicas) for _, place in places),
        sum(place.leader is None for _, place in places),
        groups,
    )


def _group_row(group: GroupLag, *, certain: bool) -> GroupRow:
    worst = max((each.status for each in group.partitions), default=group.status)
    return GroupRow(
        group.group,
        group.state or "Empty",
        group.status.name,
        worst.name,
        certain,
        group.total_lag,
        oldest_s(group),
        caught_up_s(group),
        group.members,
        tuple(dict.fromkeys(each.topic for each in group.partitions)),
    )


def _broker_rows(look: Look, disks: Disks) -> tuple[BrokerRow, ...]:
    leaders: Counter[int] = Counter()
    preferred: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    for place in look.places.values():
        if place.leader is not None:
            leaders[place.leader] += 1
        preferred.update(place.replicas[:1])
        replicas.update(place.replicas)
        behind.update(set(place.replicas) - set(place.in_sync))
    rows = []
    for broker in sorted({*replicas, *look.brokers}):
        known = look.brokers.get(broker)
        own = [each for each in disks.directories if each.broker == broker]
        told = [each for each in own if each.total_bytes >= 0]
        rows.append(
            BrokerRow(
                broker,
                str(known.address) if known else "away",
                (known.rack or "") if known else "",
                broker == look.controller_id,
                known is not None,
                leaders[broker],
                preferred[broker],
                replicas[broker],
                behind[broker],
                sum(each.replicas_bytes for each in own),
                sum(each.total_bytes for each in told),
                sum(each.free_bytes for each in told),
            )
        )
    return tuple(rows)


DISK_SHARE_MIN = 0.1


def health(look: Look, brokers: Sequence[BrokerRow], judged: Sequence[GroupLag], disks: Disks) -> Health:
    places = look.places.values()
    offline = sum(place.leader is None for place in places)
    under = sum(len(place.in_sync) < len(place.replicas) for place in places)
    away = [row.broker for row in brokers if not row.alive]
    full = [
        each
        for each in disks.directories
        if each.total_bytes > 0 and each.free_bytes < DISK_SHARE_MIN * each.total_bytes
    ]
    broken = [each for each in disks.directories if each.error]
    bad = sum(group.status >= Status.ERR for group in judged)
    words = []
    if look.controller_id not in look.brokers:
        words.append("there is no controller")
    if away:
        words.append(f"{_some(len(away), 'broker')} away: {', '.join(map(str, away))}")
    if offline:
        words.append(f"{_some(offline, 'partition')} without a leader")
    if under:
        words.append(f"{_some(under, 'partition')} under-replicated")
    if broken:
        words.append(f"{_some(len(broken), 'log directory', 'log directories')} offline")
    words += [f"broker {each.broker}: {each.path} has less than a tenth of its space left" for each in full]
    if bad:
        words.append(f"{_some(bad, 'group')} stopped, stalled or rewound")
    words += look.failures
    return Health(not words, tuple(words))


def _some(count: int, what: str, many: str = "") -> str:
    return f"{count:,} {what if count == 1 else many or what + 's'}"
