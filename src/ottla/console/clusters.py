"""The clusters of a console: a connection to each, and one look at it that all pages share for a moment.

However many browsers are open, a cluster is looked at once in a while: often while somebody is there to see it, seldom
otherwise, and the more seldom the longer a look takes. No page asks brokers for one topic after the other.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

from ottla.client import admin
from ottla.client.cluster import Cluster, error_code
from ottla.client.settings import client_settings
from ottla.console import snapshot as snapshots
from ottla.console.access.broker_login import merged
from ottla.console.history import History
from ottla.console.listeners import MetricsListener
from ottla.console.snapshot import RIPE_LOOKS, Directory, Disks, Snapshot
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring.lag.watching import Watch, WatchSettings
from ottla.monitoring.looking import Look
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsResult

logger = logging.getLogger(__name__)

CLIENT_ID = "ottla-console"
PATIENCE: Mapping[str, str] = {
    "request.timeout.ms": "15000",
    "default.api.timeout.ms": "20000",
    "socket.connection.setup.timeout.ms": "3000",
}
ACTIVE_SECONDS = 5.0
IDLE_SECONDS = 60.0
LOOKED_AT_SECONDS = 30.0
"""So long after a request somebody counts as looking."""
FRESH_SECONDS = 2.0
DISKS_SECONDS = 30.0
LOOK_SHARE = 10.0
"""Between two looks lie at least so many times the seconds that one took: brokers should not feel it."""
UNUSED_SECONDS_MAX = 600.0
EVENTS_MAX = 50
FIRST_LOOK_SECONDS_MAX = 20.0


class Unseen(OttlaError):
    """Nothing is known of the cluster yet: no broker answers."""


class ClusterSettings(NamedTuple):
    name: str
    client: Mapping[str, str]
    """By the names of Java's client, `bootstrap.servers` among them."""
    registry: str | None = None
    registry_login: tuple[str, str] | None = None
    registry_ca: str | None = None
    pipelines: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    """Files of mirrors whose flows may be switched."""
    state_dir: str = ".ottla/pipelines"
    """Of those mirrors, and of the pipelines that are started here."""
    pipeline_files: str = ""
    """A folder whose pipelines may be started."""
    backups: tuple[str, ...] = ()
    """Folders, s3:// addresses, or files of `ottla backup run`."""
    metrics: tuple[MetricsListener, ...] = ()
    """Of the brokers."""
    monitors: tuple[str, ...] = ()
    """Where `ottla monitor` tells its metrics."""

    @property
    def bootstrap(self) -> str:
        return self.client["bootstrap.servers"]


class Event(NamedTuple):
    """Something that became different between two looks."""

    at_ms: int
    words: str


class WatchedCluster:
    def __init__(self, settings: ClusterSettings, login: Mapping[str, str] | None = None) -> None:
        """`login`: settings of a user's own connection, in place of the console's."""
        self.settings = settings
        self.name = settings.name
        self.client = client_settings(merged({"client.id": CLIENT_ID, **PATIENCE, **settings.client}, login))
        self.history = History()
        self.events: deque[Event] = deque(maxlen=EVENTS_MAX)
        self.viewers = 0
        """Streams that are open."""
        self.asked = time.monotonic()
        self._watch = Watch(WatchSettings(settings.name, self.client, directories=False))
        self._cluster: Cluster | None = None
        self._snapshot: Snapshot | None = None
        self._stale = True
        self._looking = asyncio.Lock()
        self._changed = asyncio.Condition()
        self._disks = Disks()
        self._disks_asked = self._disks_took = 0.0
        self._before: tuple[dict[str, int], float] | None = None
        self._taken = 0.0
        self._pace: asyncio.Task[None] | None = None

    @property
    def cluster(self) -> Cluster:
        """For what is asked beside the look."""
        if self._cluster is None:
            self._cluster = self.client.cluster()
        return self._cluster

    @property
    def error(self) -> str:
        """Why the last look failed, if it did: what is shown is older then."""
        return self._watch.error

    @property
    def last(self) -> Snapshot | None:
        return self._snapshot

    def invalidate(self) -> None:
        """Something was changed here: whoever asks next wants to see it."""
        self._stale = True

    async def close(self) -> None:
        if self._pace is not None:
            self._pace.cancel()
            await asyncio.gather(self._pace, return_exceptions=True)
        await self._watch.close()
        if self._cluster is not None:
            await self._cluster.close()

    async def snapshot(self) -> Snapshot:
        """At once where there is one that nobody knows to be old; it is renewed in the background."""
        self.asked = time.monotonic()
        if self._pace is None:
            self._pace = asyncio.create_task(self._keep_pace())
        if self._snapshot is None or self._stale:
            await self._look(time.monotonic())
        elif time.monotonic() - self._taken > LOOKED_AT_SECONDS + self._pause():
            await self._look(time.monotonic())  # nobody looked for long, and what there is may be a minute old
        if self._snapshot is None:
            raise Unseen(f"no broker of {self.name} answers at {self.settings.bootstrap}: {self.error}")
        return self._snapshot

    async def following(self, number: int, wait_s: float) -> Snapshot | None:
        """The first snapshot after the one with this number; None if none comes in that time."""
        self.asked = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s), self._changed:
                await self._changed.wait_for(lambda: self._snapshot is not None and self._snapshot.number > number)
                return self._snapshot
        return None

    @contextlib.asynccontextmanager
    async def viewer(self) -> AsyncIterator[None]:
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1

    def _pause(self) -> float:
        looked_at = self.viewers > 0 or time.monotonic() - self.asked < LOOKED_AT_SECONDS
        return max(ACTIVE_SECONDS if looked_at else IDLE_SECONDS, self._watch.look_seconds * LOOK_SHARE)

    async def _keep_pace(self) -> None:
        while True:
            await asyncio.sleep(ACTIVE_SECONDS)
            if time.monotonic() - self._taken >= self._pause() - 0.5:
                await self._look(time.monotonic())

    async def _look(self, wanted_since: float) -> None:
        async with self._looking:
            if self._taken > wanted_since and not self._stale:
                return  # somebody else has looked while we waited
            self._stale = False
            seen = self._watch.last
            await self._watch.once()
            found = self._watch.last
            if found is None or (found is seen and self._watch.error):
                self._stale = self._snapshot is None
                return
            if time.monotonic() - self._disks_asked > max(DISKS_SECONDS, self._disks_took * LOOK_SHARE):
                await self._ask_for_disks(found)
            await self._take(found)

    async def _take(self, found: Look) -> None:
        now = time.monotonic()
        before = None if self._before is None else (self._before[0], now - self._before[1])
        number = self._snapshot.number + 1 if self._snapshot is not None else 1
        judged = self._watch.judged
        made = await asyncio.to_thread(snapshots.make, found, judged, self._disks, before, time.time(), number)
        if self._snapshot is not None:
            self.events.extend(Event(made.taken_ms, words) for words in differences(self._snapshot, made))
        self._before = (snapshots.totals_of(found.reading.ends), now)
        self._taken = now
        self.history.note(made)
        async with self._changed:
            self._snapshot = made
            self._changed.notify_all()

    async def _ask_for_disks(self, found: Look) -> None:
        started = self._disks_asked = time.monotonic()

        async def ask(node: int) -> tuple[int, list[DescribeLogDirsResult]]:
            try:
                return node, await self.cluster.retrying(lambda: admin.describe_log_dirs(self.cluster, node))
            except OttlaError as error:
                logger.debug("Broker %d does not tell its log directories: %s", node, error)
                return node, []

        told = await asyncio.gather(*(ask(node) for node in sorted(found.brokers)))
        self._disks = await asyncio.to_thread(read_disks, told)
        self._disks_took = time.monotonic() - started


def read_disks(told: Sequence[tuple[int, list[DescribeLogDirsResult]]]) -> Disks:
    directories = []
    sizes: dict[int, dict[TopicPartition, int]] = {}
    for node, results in told:
        for result in results:
            here, own = sizes.setdefault(node, {}), 0
            for topic in result.topics:
                for found in topic.partitions:
                    own += found.partition_size
                    if not found.is_future_key:
                        here[TopicPartition(topic.name, found.partition_index)] = found.partition_size
            error = error_code(result.error_code).name if result.error_code else ""
            directories.append(Directory(node, result.log_dir, error, result.total_bytes, result.usable_bytes, own))
    return Disks(tuple(directories), sizes, any(results for _, results in told))


NAMES_SHOWN_MAX = 5


def differences(before: Snapshot, now: Snapshot) -> list[str]:
    """What changed between two looks, in words."""
    words = []
    were, are = set(before.look.brokers), set(now.look.brokers)
    words += [f"broker {broker} went away" for broker in sorted(were - are)]
    words += [f"broker {broker} came" for broker in sorted(are - were)]
    if before.controller_id != now.controller_id:
        words.append(f"broker {now.controller_id} became the controller")
    old, new = set(before.numbers), set(now.numbers)
    words += _named("topic", "was deleted", "were deleted", old - new)
    words += _named("topic", "was created", "were created", new - old)
    if now.look.reading.whole and before.look.reading.whole:
        words += _named("group", "is gone", "are gone", before.judged.keys() - now.judged.keys())
        words += _named("group", "is new", "are new", now.judged.keys() - before.judged.keys())
    for name, group in now.judged.items():
        was = before.judged.get(name)
        if was is not None and was.status is not group.status and before.number >= RIPE_LOOKS:
            words.append(f"group {name}: {was.status.name} became {group.status.name}")
    return words[:EVENTS_MAX]


def _named(what: str, one: str, many: str, names: set[str]) -> list[str]:
    if len(names) > NAMES_SHOWN_MAX:
        return [f"{len(names):,} {what}s {many}"]
    return [f"{what} {name} {one}" for name in sorted(names)]


class Clusters:
    """By name. A user with a login of their own has their own connections, and sees what the brokers let them see."""

    def __init__(self, settings: Sequence[ClusterSettings]) -> None:
        self.settings = {each.name: each for each in settings}
        self._watched: dict[tuple[str, str], WatchedCluster] = {}
        self._beginning: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Look at each of them, so that whoever comes first does not wait for it."""

        async def look(name: str) -> None:
            with contextlib.suppress(Unseen):  # whoever asks is told why
                await (await self.of(name)).snapshot()

        self._beginning = [asyncio.create_task(look(name), name=f"first look at {name}") for name in self.names]

    @property
    def names(self) -> list[str]:
        return list(self.settings)

    async def of(self, name: str, who: str = "", login: Mapping[str, str] | None = None) -> WatchedCluster:
        """`who` tells logins apart; KeyError if there is no such cluster."""
        key = (name, who if login else "")
        found = self._watched.get(key)
        if found is None:
            found = self._watched[key] = WatchedCluster(self.settings[name], login)
        found.asked = time.monotonic()
        await self._close_unused(found)
        return found

    async def _close_unused(self, used: WatchedCluster) -> None:
        now = time.monotonic()
        for key, each in list(self._watched.items()):
            if each is not used and key[1] and not each.viewers and now - each.asked > UNUSED_SECONDS_MAX:
                del self._watched[key]
                await each.close()

    async def close(self) -> None:
        for task in self._beginning:
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)
        watched, self._watched = list(self._watched.values()), {}
        for each in watched:
            await each.close()
