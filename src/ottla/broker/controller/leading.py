"""The controller proper: the one broker that sees to it that every partition that can have a leader has one.

It follows the image. What may need a decision is noted when a change comes in: partitions that changed, and those of
brokers that came or went. A task decides on the newest image and commits. The commit fails when another broker is the
controller by now; then nothing is done any more. So whatever is interrupted, the next picture leads to the same end.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ottla.broker.controller.elections import elect_preferred
from ottla.broker.controller.holders import Holders, Place
from ottla.broker.controller.partition_changes import EXAMINED_AT_ONCE, Changed, PartitionChanges, Tally
from ottla.broker.controller.reassignments import next_state
from ottla.cluster.image import NO_LEADER, ClusterImage, ImageChange, PartitionImage
from ottla.cluster.store import MetadataStore, NotController, StoreError
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock
from ottla.telemetry.histogram import Histogram

logger = logging.getLogger(__name__)

BACK_OFF_SECONDS_MIN = 0.05
BACK_OFF_SECONDS_MAX = 1.0


class ControllerCounts:
    """Since this broker started, as plain integers; times in microseconds."""

    __slots__ = ("elections", "errors", "processing", "queue", "taken_up", "unclean")

    def __init__(self) -> None:
        self.taken_up = self.unclean = self.errors = 0
        self.elections = Histogram(1 / 1000)
        self.queue = Histogram(1 / 1000)
        self.processing = Histogram(1 / 1000)


class LeadingController:
    """Acts while the image names this broker as the controller. `start` it once, when the broker is registered."""

    def __init__(self, store: MetadataStore, config: LiveConfig, node_id: int, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._node_id = node_id
        self._clock = clock
        self._holders: Holders | None = None
        self._work = PartitionChanges(store, clock, self._decide, as_controller=True)
        self._work.on_committed = self._count
        self._preferring: set[Place] = set()
        self._reasons: dict[str, None] = {}
        self._noticed = 0.0
        self._elected = self._leaderless = 0
        self.counts = ControllerCounts()
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._end_subscription: Callable[[], None] | None = None

    @property
    def active(self) -> bool:
        """Whether this broker is the controller."""
        return self._holders is not None

    def start(self) -> None:
        self._end_subscription = self._store.subscribe(self.on_change)
        self._take_up(self._store.image)
        self._task = asyncio.create_task(self._run(), name="controller")

    async def stop(self) -> None:
        if self._end_subscription is not None:
            self._end_subscription()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def wait_idle(self) -> None:
        """Return when nothing is left to decide."""
        await self._idle.wait()

    def on_change(self, change: ImageChange) -> None:
        """Note what may need a decision. Costs what changed; a broker's coming or going costs what it holds."""
        if change.new.controller_id != self._node_id:
            if self._holders is not None:
                logger.info("Broker %d resigned: it is no longer the controller", self._node_id)
            self._holders = None
            self._forget_all()
            return
        if self._holders is None or change.old.controller_epoch != change.new.controller_epoch:
            self._take_up(change.new)
            return
        self._look_at(self._holders.apply(change), "changed partitions")
        if change.brokers:
            for broker, why in _came_or_went(change):
                held = self._holders.of(broker)
                self._look_at(sorted(held, key=lambda place: _has_leader(change.new, place)), why)
        self._look_at(_allowed_now(change), "changed settings")

    async def rebalance(self) -> None:
        """Give leadership back to first replicas, of brokers that lead too few of what they should lead."""
        image = self._store.image
        if self._holders is None or not self._config.broker.auto_leader_rebalance_enable:
            return
        allowed = self._config.broker.leader_imbalance_per_broker_percentage / 100
        preferred: Counter[int] = Counter()
        elsewhere: dict[int, list[Place]] = {}
        for number, (place, partition) in enumerate(_partitions(image)):
            if number % EXAMINED_AT_ONCE == EXAMINED_AT_ONCE - 1:
                await asyncio.sleep(0)
            first = partition.replicas[0]
            preferred[first] += 1
            if elect_preferred(partition, image.brokers) is not None:
                elsewhere.setdefault(first, []).append(place)
        for broker, places in elsewhere.items():
            if len(places) / preferred[broker] > allowed:
                self._preferring.update(places)
                self._look_at(places, f"preferred replica election for broker {broker}")

    def _take_up(self, image: ClusterImage) -> None:
        """This broker has become the controller: whatever happened while nobody was, is seen to now."""
        if image.controller_id != self._node_id:
            return
        why = "new controller"
        self.counts.taken_up += self._holders is None
        logger.info("Broker %d elected as the controller, controller epoch %d", self._node_id, image.controller_epoch)
        self._holders = Holders(image)
        alive = image.brokers
        self._look_at((place for place, partition in _partitions(image) if partition.leader not in alive), why)
        self._look_at((place for place, _ in _partitions(image)), why)

    def _forget_all(self) -> None:
        self._work.due.clear()
        self._preferring.clear()

    def _look_at(self, places: Iterable[Place], why: str) -> None:
        due = self._work.due
        before = len(due)
        due.update(dict.fromkeys(places))
        if len(due) > before:
            self._begin(why)

    def _begin(self, why: str) -> None:
        if not self._reasons:
            self._noticed = self._clock.monotonic()
        self._reasons[why] = None
        self._idle.clear()
        self._wake.set()

    async def _run(self) -> None:
        back_off = BACK_OFF_SECONDS_MIN
        while True:
            await self._wake.wait()
            self._wake.clear()
            why, waited = " and ".join(self._reasons), self._clock.monotonic() - self._noticed
            self._reasons.clear()
            tally = Tally()
            self.counts.queue.record(int(1e6 * waited))
            began = self._clock.monotonic()
            try:
                await self._work.work_off(tally)
                back_off = BACK_OFF_SECONDS_MIN
            except (StoreError, NotController) as error:  # if there is another controller, the news of it will come
                self.counts.errors += 1
                logger.warning(
                    "Controller (%s): cannot write partition states, trying again in %.2f s: %s", why, back_off, error
                )
                await asyncio.sleep(back_off)
                back_off = min(2 * back_off, BACK_OFF_SECONDS_MAX)
            except Exception:
                self.counts.errors += 1
                logger.exception("Controller (%s): failed, examining all partitions again", why)
                await asyncio.sleep(BACK_OFF_SECONDS_MAX)
                self._take_up(self._store.image)
            took = self._clock.monotonic() - began
            self.counts.processing.record(int(1e6 * took))
            for _ in range(self._elected):
                self.counts.elections.record(int(1e6 * (waited + took)))
            self._tell(why, waited, tally)
            if not self.active:
                self._forget_all()
            if self._work.due:
                self._begin(why)
            elif not self._wake.is_set():
                self._idle.set()

    def _decide(self, place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
        try:
            return self._next_state(place, partition, image)
        except Exception:  # one partition that cannot be decided must not keep the others from having a leader
            logger.exception("%s-%d: Leader election failed, state stays %s", *place, partition)
            return None

    def _next_state(self, place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
        topic = self._config.topic(place[0])
        after = next_state(
            partition,
            image.brokers,
            unclean=topic.unclean_leader_election_enable,
            floor=topic.min_insync_replicas,
        )
        if after is None and place in self._preferring:
            after = elect_preferred(partition, image.brokers)
            if after is None:
                self._preferring.discard(place)
        return after

    def _count(self, changed: Changed, image: ClusterImage) -> None:
        self._preferring.difference_update(changed)
        for (name, number), after in changed.items():
            before = image.topics[name].partitions[number]
            self._elected += after.leader not in (before.leader, NO_LEADER)
            self._leaderless += after.leader == NO_LEADER
            if before.isr and after.leader != NO_LEADER and after.leader not in before.isr:
                self.counts.unclean += 1
                logger.warning(
                    "%s-%d: Unclean leader election: broker %d leads in leader epoch %d and was not in the ISR %s: "
                    "records that only those replicas had are lost",
                    name, number, after.leader, after.leader_epoch, ",".join(map(str, before.isr)),
                )  # fmt: skip

    def _tell(self, why: str, waited: float, tally: Tally) -> None:
        if tally.changed:
            logger.info(
                "Controller (%s): %d partition states changed, %d leaders elected, %d partitions offline; "
                "begun after %.1f ms, %s",
                why, tally.changed, self._elected, self._leaderless, 1000 * waited, tally,
            )  # fmt: skip
        self._elected = self._leaderless = 0


def _partitions(image: ClusterImage) -> Iterator[tuple[Place, PartitionImage]]:
    for name in sorted(image.topics):  # in the same order in every process
        for number, partition in enumerate(image.topics[name].partitions):
            yield (name, number), partition


def _has_leader(image: ClusterImage, place: Place) -> bool:
    """Partitions without one come first: their clients are waiting."""
    return image.topics[place[0]].partitions[place[1]].leader in image.brokers


def _came_or_went(change: ImageChange) -> Iterator[tuple[int, str]]:
    old, new = change.old.brokers, change.new.brokers
    for broker in sorted(old.keys() | new.keys()):
        if broker not in new:
            yield broker, f"broker {broker} failed or shut down"
        elif broker not in old:
            yield broker, f"broker {broker} started"
        elif old[broker].epoch != new[broker].epoch:
            yield broker, f"broker {broker} restarted"


def _allowed_now(change: ImageChange) -> Iterator[Place]:
    """Partitions without a leader that may have one now because a setting changed."""
    for topic in change.new.topics.values() if change.broker_configs else change.written:
        before = change.old.topics.get(topic.name)
        if change.broker_configs or (before is not None and before.configs is not topic.configs):
            for number, partition in enumerate(topic.partitions):
                if partition.leader == NO_LEADER:
                    yield topic.name, number
