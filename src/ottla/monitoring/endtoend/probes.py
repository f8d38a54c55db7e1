"""What else clients need of a cluster, tried again and again: committing offsets, making and deleting topics."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Mapping

from ottla.client import admin, groups
from ottla.client.cluster import Cluster, error_code
from ottla.client.settings import ClientSettings
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.endtoend.slo import Delays, Level, Objective
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

logger = logging.getLogger(__name__)

PROPAGATION_SECONDS_MAX = 10.0
PAUSE_SECONDS = 0.02


class CommitProbe:
    """Commits how far the monitor has read, as a consumer would: the monitor is a group of its own."""

    def __init__(self, settings: EndToEndSettings, positions: Callable[[], Mapping[int, int]]) -> None:
        self.level = Level(Objective())
        self.delays = Delays()
        self.last_error = ""
        self._settings = settings
        self._positions = positions

    async def run(self, cluster: Cluster) -> None:
        while True:
            await asyncio.sleep(self._settings.commit_s)
            await self.once(cluster)

    async def once(self, cluster: Cluster) -> None:
        offsets = {TopicPartition(self._settings.topic, n): offset for n, offset in self._positions().items()}
        if not offsets:
            return
        started = time.monotonic()
        try:
            async with asyncio.timeout(2 * self._settings.client.total_timeout_s):  # its own deadlines come first
                refused = await groups.commit_offsets(cluster, self._settings.group, offsets)
            error = next((str(code) for code in refused.values()), "")
        except TimeoutError:
            error = f"no answer within {2 * self._settings.client.total_timeout_s:g} s"
        except OttlaError as failure:
            error = str(failure)
        self.last_error = error
        if error:
            self.level.note(0, 1, time.time())
        else:
            self.level.note(1, 0, time.time())
            self.delays.note((time.monotonic() - started) * 1000, time.time())


class TopicProbe:
    """Makes a topic and waits until every broker knows it; deletes it and waits until none does."""

    def __init__(self, settings: EndToEndSettings) -> None:
        self.creation_ms: float | None = None
        self.deletion_ms: float | None = None
        self.done = 0
        self.failures = 0
        self.last_error = ""
        self._settings = settings
        self._client: ClientSettings = settings.client

    async def run(self, cluster: Cluster) -> None:
        while True:
            await self.once(cluster)
            await asyncio.sleep(self._settings.topic_probe_s)

    async def once(self, cluster: Cluster) -> None:
        name = f"{self._settings.topic}-probe-{uuid.uuid4().hex[:12]}"
        try:
            await cluster.metadata([])
            self.creation_ms = await self._create(cluster, name)
            self.deletion_ms = await self._delete(cluster, name)
            self.done += 1
            self.last_error = ""
        except (OttlaError, TimeoutError) as error:
            self.failures += 1
            self.last_error = str(error) or f"brokers did not hear of it within {PROPAGATION_SECONDS_MAX:g} s"
            logger.warning("Topic %s could not be created and deleted: %s", name, self.last_error)
            await self._clean_up(cluster, name)

    async def _create(self, cluster: Cluster, name: str) -> float:
        started = time.monotonic()
        factor = min(len(cluster.brokers), self._settings.wanted.replication_factor or 3)
        await admin.create_topic(cluster, name, partitions=1, replication_factor=factor)
        await self._until_all_know(cluster, name, known=True)
        return (time.monotonic() - started) * 1000

    async def _delete(self, cluster: Cluster, name: str) -> float:
        started = time.monotonic()
        await admin.delete_topic(cluster, name)
        await self._until_all_know(cluster, name, known=False)
        return (time.monotonic() - started) * 1000

    async def _clean_up(self, cluster: Cluster, name: str) -> None:
        try:
            async with asyncio.timeout(self._client.total_timeout_s):
                await admin.delete_topic(cluster, name)
        except (OttlaError, TimeoutError) as error:
            if not (isinstance(error, ApiError) and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                logger.warning("Topic %s may be left behind: %s", name, error)

    async def _until_all_know(self, cluster: Cluster, name: str, *, known: bool) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        async with asyncio.timeout(PROPAGATION_SECONDS_MAX):
            for node in sorted(cluster.brokers):
                while True:
                    answer = await cluster.call(request, MetadataResponse, node=node, min_version=4)
                    code = error_code(answer.topics[0].error_code) if answer.topics else ErrorCode.NONE
                    if (code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) is known:
                        break
                    await asyncio.sleep(PAUSE_SECONDS)
