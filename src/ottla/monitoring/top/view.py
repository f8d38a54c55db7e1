"""What there is to see of a cluster, from one look after the other. Pure: looks and `now` in, rows out."""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.model.names import TopicPartition
from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.figures import caught_up_s, oldest_s
from ottla.monitoring.readings import PartitionPlace
from ottla.monitoring.top.exposition import RequestFigures

HISTORY = 30
BARS = "▁▂▃▄▅▆▇█"


class BrokerRow(NamedTuple):
    broker: int
    address: str
    rack: str
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    """Replicas that it holds and that are not in sync."""
    free_share: float | None
    """Of the fullest of its disks."""


class TopicRow(NamedTuple):
    topic: str
    partitions: int
    records_per_second: float | None
    records: int
    """Where its logs end, all together."""
    under_replicated: int
    leaderless: int


class GroupRow(NamedTuple):
    group: str
    status: str
    worst: str
    complete: bool
    """Whether its window is full: before that a judgement may change."""
    lag: int
    oldest_s: float | None
    caught_up_s: float | None
    members: int
    spark: str


class RequestRow(NamedTuple):
    request: str
    per_second: float | None
    errors_per_second: float | None
    p50_ms: float | None
    p99_ms: float | None


class View(NamedTuple):
    brokers: list[BrokerRow]
    topics: list[TopicRow]
    groups: list[GroupRow]
    requests: list[RequestRow]
    pipelines: list[dict[str, Any]]
    failures: list[str]


class Seen(NamedTuple):
    """What one look brought."""

    brokers: Mapping[int, tuple[str, str | None]]
    """Address and rack by id."""
    controller_id: int
    places: Mapping[TopicPartition, PartitionPlace]
    ends: Mapping[TopicPartition, int]
    groups: list[GroupLag]
    disks: Mapping[int, float]
    requests: Mapping[str, RequestFigures]
    pipelines: list[dict[str, Any]]
    failures: list[str]


class Observer:
    """Remembers enough of the looks before to tell speeds and to draw lag."""

    def __init__(self) -> None:
        self._topics: tuple[dict[str, int], float] | None = None
        self._requests: tuple[Mapping[str, RequestFigures], float] | None = None
        self._lags: dict[str, deque[int]] = {}

    def see(self, seen: Seen, now_s: float) -> View:
        view = View(
            _brokers(seen),
            self._topic_rows(seen, now_s),
            self._group_rows(seen),
            self._request_rows(seen, now_s),
            seen.pipelines,
            seen.failures,
        )
        if seen.requests:
            self._requests = (seen.requests, now_s)
        return view

    def _topic_rows(self, seen: Seen, now_s: float) -> list[TopicRow]:
        totals: Counter[str] = Counter()
        for (topic, _), end in seen.ends.items():
            totals[topic] += end
        before, since = self._topics if self._topics is not None else ({}, now_s)
        places: dict[str, list[PartitionPlace]] = {}
        for (topic, _), place in seen.places.items():
            places.setdefault(topic, []).append(place)
        rows = [
            TopicRow(
                topic,
                len(found),
                _speed(totals[topic], before.get(topic), now_s - since),
                totals[topic],
                sum(len(place.in_sync) < len(place.replicas) for place in found),
                sum(place.leader is None for place in found),
            )
            for topic, found in places.items()
        ]
        self._topics = (dict(totals), now_s)
        return sorted(rows, key=lambda row: (-(row.records_per_second or 0.0), row.topic))

    def _group_rows(self, seen: Seen) -> list[GroupRow]:
        rows = []
        for group in seen.groups:
            history = self._lags.setdefault(group.group, deque(maxlen=HISTORY))
            history.append(group.total_lag)
            worst = max((each.status for each in group.partitions), default=group.status)
            rows.append(
                GroupRow(
                    group.group,
                    group.status.name,
                    worst.name,
                    all(each.complete >= 1.0 for each in group.partitions),
                    group.total_lag,
                    oldest_s(group),
                    caught_up_s(group),
                    group.members,
                    spark(list(history)),
                )
            )
        for gone in self._lags.keys() - {group.group for group in seen.groups}:
            del self._lags[gone]
        return sorted(rows, key=lambda row: (-row.lag, row.group))

    def _request_rows(self, seen: Seen, now_s: float) -> list[RequestRow]:
        before, since = self._requests if self._requests is not None else ({}, now_s)
        rows = []
        for name, figures in seen.requests.items():
            last = before.get(name)
            passed = now_s - since
            rows.append(
                RequestRow(
                    name,
                    _speed(figures.requests, last.requests if last else None, passed),
                    _speed(figures.errors, last.errors if last else None, passed),
                    figures.p50_ms,
                    figures.p99_ms,
                )
            )
        return sorted(rows, key=lambda row: (-(row.p99_ms or 0.0), -(row.per_second or 0.0), row.request))


def _brokers(seen: Seen) -> list[BrokerRow]:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    for place in seen.places.values():
        if place.leader is not None:
            leaders[place.leader] += 1
        replicas.update(place.replicas)
        behind.update(set(place.replicas) - set(place.in_sync))
    known = {broker for place in seen.places.values() for broker in place.replicas} | set(seen.brokers)
    return [
        BrokerRow(
            broker,
            *((seen.brokers[broker][0], seen.brokers[broker][1] or "") if broker in seen.brokers else ("away", "")),
            broker == seen.controller_id,
            leaders[broker],
            replicas[broker],
            behind[broker],
            seen.disks.get(broker),
        )
        for broker in sorted(known)
    ]


def _speed(now: float, before: float | None, seconds: float) -> float | None:
    """None at first; 0 where a count has become smaller, as after a restart."""
    return None if before is None or seconds <= 0 else max(0.0, (now - before) / seconds)


def spark(values: list[int]) -> str:
    """A line of bars, the highest for the most; nothing at all is a low line."""
    most = max(values, default=0)
    if not most:
        return BARS[0] * len(values)
    return "".join(BARS[min(len(BARS) - 1, value * len(BARS) // (most + 1))] for value in values)
