"""Who leads the partitions of the monitor's topic, asked again when somebody finds that it is not so any more."""

import asyncio
import logging

from ottla.client import admin, replicas
from ottla.client.cluster import Cluster
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring.endtoend.layout import Plan, plan
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.looking import places_of
from ottla.monitoring.readings import PartitionPlace

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 5.0
PAUSE_SECONDS = 0.1


class Leaders:
    """The topic as it is, and as it should be."""

    def __init__(self, settings: EndToEndSettings, cluster: Cluster) -> None:
        self.places: dict[int, PartitionPlace] = {}
        self.brokers: list[int] = []
        self.problem = ""
        """What keeps the topic from being as it should."""
        self._settings = settings
        self._cluster = cluster
        self._stale = asyncio.Event()
        self._managed_at: float | None = None
        self._known = 0

    def leader(self, partition: int) -> int | None:
        place = self.places.get(partition)
        return place.leader if place is not None else None

    def look_again(self) -> None:
        """Somebody was refused by whom these leaders name: the metadata is asked for now."""
        self._stale.set()

    async def run(self) -> None:
        """Follows the metadata; every `rebalance_s`, and when a broker came or went, sees to the topic."""
        while True:
            try:
                await self.refresh()
                loop = asyncio.get_running_loop()
                due = self._managed_at is None or loop.time() - self._managed_at >= self._settings.rebalance_s
                if due or len(self.brokers) > self._known:
                    await self.manage()
                self._known = len(self.brokers)
            except OttlaError as error:
                logger.warning("Metadata of %s: %s", self._settings.topic, error)
            try:
                async with asyncio.timeout(REFRESH_SECONDS):
                    await self._stale.wait()
                await asyncio.sleep(PAUSE_SECONDS)  # everybody who is refused says so
            except TimeoutError:
                pass
            self._stale.clear()

    async def refresh(self) -> None:
        metadata = await self._cluster.metadata([self._settings.topic])
        self.brokers = sorted(self._cluster.brokers)
        self.places = {each.partition: place for each, place in places_of(metadata, set(self.brokers)).items()}

    async def manage(self) -> None:
        """One step at a time, until nothing is left to do; what is not allowed is told."""
        self._managed_at = asyncio.get_running_loop().time()
        for _ in range(10):
            await self.refresh()
            found = plan(self.brokers, self.places, self._settings.wanted)
            if found.problem != self.problem and found.problem:
                logger.warning("Topic %s: %s", self._settings.topic, found.problem)
            self.problem = found.problem
            if not await self._carry_out(found):
                return

    async def _carry_out(self, found: Plan) -> bool:
        """Whether there is more to look at."""
        topic = self._settings.topic
        if found.create is not None:
            logger.info("Creating topic %s with %d partitions", topic, len(found.create))
            try:
                await admin.create_topic(
                    self._cluster, topic, assignment=found.create, configs=self._settings.topic_configs
                )
            except ApiError as error:
                if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
            await self._until_led(len(found.create))
            return True
        if found.add is not None:
            count = len(self.places) + len(found.add)
            logger.info("Adding partitions to topic %s: %d in all", topic, count)
            await admin.create_partitions(self._cluster, topic, count, found.add)
            await self._until_led(count)
            return True
        if found.move:
            logger.info("Moving partitions of topic %s: %s", topic, found.move)
            refused = await replicas.alter_reassignments(
                self._cluster, {TopicPartition(topic, number): target for number, target in found.move.items()}
            )
            for partition, reason in refused.items():
                logger.warning("%s: Cannot be moved: %s", partition, reason)
            return False  # it takes its time; the leader is elected at the next turn
        if found.elect:
            partitions = [TopicPartition(topic, number) for number in found.elect]
            await replicas.elect_leaders(self._cluster, replicas.ElectionType.PREFERRED, partitions)
            await self.refresh()
        return False

    async def _until_led(self, count: int) -> None:
        """The controller has made them; other brokers hear of it a moment later."""
        deadline = asyncio.get_running_loop().time() + self._settings.client.total_timeout_s * 2
        while asyncio.get_running_loop().time() < deadline:
            await self.refresh()
            if len(self.places) >= count and all(place.leader is not None for place in self.places.values()):
                return
            await asyncio.sleep(PAUSE_SECONDS)
        raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE, f"the partitions of {self._settings.topic} have no leaders yet")
