"""What a replica has only while it leads: its followers' progress, and those who wait for them."""

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from ottla.broker.replication.progress import Progress
from ottla.broker.replication.traffic import Traffic
from ottla.broker.replication.waiters import CommitWaits
from ottla.cluster.image import NO_BROKER_EPOCH, BrokerImage
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock

if TYPE_CHECKING:
    from ottla.broker.replication.followed import FollowedReplica


class FollowerSession(Protocol):
    """A follower's fetch session. One in which nothing moves is alive all the same, and this is how that shows."""

    fetched_s: float


class ReplicaContext:
    """What the replicas of a broker share."""

    __slots__ = ("brokers", "clock", "config", "isr_wanted", "node_id", "traffic")

    def __init__(self, node_id: int, config: LiveConfig, clock: Clock) -> None:
        self.node_id = node_id
        self.config = config
        self.clock = clock
        self.brokers: Mapping[int, BrokerImage] = {}
        """The brokers that are alive."""
        self.isr_wanted: Callable[[FollowedReplica], None] = lambda partition: None
        """Told of a partition whose in-sync replicas should perhaps change."""
        self.traffic = Traffic()

    @property
    def lag_max_s(self) -> float:
        return self.config.static.replica_lag_time_max_ms / 1000.0

    def is_current(self, broker: int, epoch: int) -> bool:
        """Whether the broker is alive, and this is its present broker epoch (as far as it told)."""
        known = self.brokers.get(broker)
        return known is not None and epoch in (NO_BROKER_EPOCH, known.epoch)


class LeaderState:
    """Of one leader epoch."""

    __slots__ = ("commits", "deletions", "lagging", "progress", "sessions")

    def __init__(self, progress: Progress, before: "LeaderState | None" = None) -> None:
        """`before` is this broker's own last leader epoch, if there was no other since."""
        self.progress = progress
        self.commits: CommitWaits = before.commits if before is not None else CommitWaits()
        self.deletions: CommitWaits = before.deletions if before is not None else CommitWaits()
        """Those who wait until every living replica has dropped the records before an offset."""
        self.sessions: dict[int, FollowerSession] = {}
        self.lagging: set[int] = set()
        """Followers that are behind and stay in sync all the same, so that enough are left to lead if need be."""

    def last_fetch(self, replica: int) -> float:
        """When this follower fetched last, be it for this partition or for others together with it."""
        follower, session = self.progress.follower(replica), self.sessions.get(replica)
        fetched_s = follower.fetched_s if follower is not None else -inf
        return max(fetched_s, session.fetched_s) if session is not None else fetched_s

    def last_fetches(self) -> dict[int, float]:
        return {replica: session.fetched_s for replica, session in self.sessions.items()}
