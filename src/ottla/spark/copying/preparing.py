"""The target before a batch is copied: its topics are there, are copies of these topics, and of what these have now."""

import asyncio
import contextlib
import time
from collections.abc import Collection, Mapping
from uuid import UUID

from ottla.client import admin
from ottla.client.admin import BROKER_DEFAULT, Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.groups import group_offsets
from ottla.client.offsets import EpochEnd, epoch_ends
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.spark.copying.words import SETTING, Fits, fits, is_copy_from, refusal, source_of, truncated
from ottla.spark.errors import DataLoss, InvalidOption
from ottla.spark.reading import resolving
from ottla.spark.reading.flow_option import CopyTo

GONE_S_MAX = 30.0
PAUSE_S = 0.05


async def settings_of(cluster: Cluster, topics: Collection[str]) -> dict[str, str | None]:
    """What the topics are copies of, `""` if of none; None where nobody knows the setting."""
    resources = [Resource(ResourceType.TOPIC, topic) for topic in sorted(topics)]
    found = await admin.describe_configs(cluster, resources) if resources else {}
    return {
        resource.name: next((config.value or "" for config in configs if config.name == SETTING), None)
        for resource, configs in found.items()
    }


class Preparing:
    """Of one flow: remembers what it has seen to be in order."""

    def __init__(self, copy_to: CopyTo, source: Cluster, target: Cluster) -> None:
        self._copy_to = copy_to
        self._source = source
        self._target = target
        self._ready: dict[str, tuple[str, int]] = {}
        """Topics with their source and how many partitions they have."""
        self._loops: set[str] = set()

    def source_of(self, topic_id: UUID) -> str:
        return source_of(self._copy_to.source_id, topic_id)

    async def prepare(self, partitions: Mapping[TopicPartition, UUID]) -> set[str]:
        """The topics that can be copied now: all but those that are copies from the target themselves."""
        wanted: dict[str, tuple[str, int]] = {}
        for (topic, number), topic_id in partitions.items():
            count = max(wanted.get(topic, ("", 0))[1], number + 1)
            wanted[topic] = self.source_of(topic_id), count
        self._loops |= await self._new_loops({*wanted} - {*self._ready} - self._loops)
        wanted = {topic: each for topic, each in wanted.items() if topic not in self._loops}
        changed = {topic: each for topic, each in wanted.items() if self._ready.get(topic) != each}
        if changed:
            await self._prepare_topics(changed)
        await self._check_epochs(wanted)
        self._ready |= wanted
        return set(wanted)

    async def _new_loops(self, topics: Collection[str]) -> set[str]:
        if not topics:
            return set()
        await self._target.metadata([])
        settings = await settings_of(self._source, topics)
        return {topic for topic, value in settings.items() if is_copy_from(value or "", self._target.cluster_id or "")}

    async def _prepare_topics(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        there = {topic.name: len(topic.partitions) for topic in await admin.list_topics(self._target)}
        settings = await self._settings([topic for topic in wanted if topic in there])
        for topic, (source, count) in wanted.items():
            if topic not in there:
                await self._make(topic, source, count)
                continue
            is_empty = not settings[topic] and await self._is_empty(topic, there[topic])
            found = fits(settings[topic], source, is_empty=is_empty)
            if found is Fits.MADE_AGAIN:
                await self._make_anew(topic, source, count, f"the topic `{topic}` was deleted and made again")
                continue
            if found is Fits.TAKE:
                await admin.alter_configs(self._target, Resource(ResourceType.TOPIC, topic), add={SETTING: source})
            elif found is not Fits.YES:
                raise InvalidOption(refusal(topic, found, settings[topic]))
            if there[topic] < count:
                await admin.create_partitions(self._target, topic, count)

    async def _settings(self, topics: Collection[str]) -> dict[str, str]:
        found = {}
        for topic, value in (await settings_of(self._target, topics)).items():
            if value is None:
                raise InvalidOption("`offsets: keep` wants a target that is an Ottla cluster: this one is none")
            found[topic] = value
        return found

    async def _is_empty(self, topic: str, partitions: int) -> bool:
        every = [TopicPartition(topic, number) for number in range(partitions)]
        ends = await resolving.latest(self._target, every, committed=False)
        return not any(ends.values())

    async def _make(self, topic: str, source: str, count: int) -> None:
        """With the settings of the source's from the first moment on: by the target's own retention, or cleaner,
        records could go that the source still has."""
        try:
            await self._create(topic, count, await self._copied_settings(topic) | {SETTING: source})
        except ApiError as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            await self._make_without_settings(topic, source, count)  # what it does not know is told by the keeper

    async def _make_without_settings(self, topic: str, source: str, count: int) -> None:
        try:
            await self._create(topic, count, {SETTING: source})
        except ApiError as error:
            if error.code is not ErrorCode.INVALID_CONFIG:
                raise
            raise InvalidOption(
                f"`offsets: keep` wants a target that is an Ottla cluster; this one says: {error}"
            ) from error

    async def _copied_settings(self, topic: str) -> dict[str, str]:
        own = self._copy_to.own_settings
        if own is None:
            return {}
        with contextlib.suppress(ApiError):  # no right to read them: the keeper says so
            found = await admin.topic_settings(self._source, [topic])
            return {name: value for name, value in found[topic].items() if name not in {*own, SETTING}}
        return {}

    async def _create(self, topic: str, count: int, configs: Mapping[str, str]) -> None:
        replicas = self._copy_to.replication_factor or BROKER_DEFAULT
        try:
            await admin.create_topic(
                self._target, topic, partitions=count, replication_factor=replicas, configs=configs
            )
        except ApiError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise

    async def _make_anew(self, topic: str, source: str, count: int, why: str) -> None:
        if not self._copy_to.clear_on_loss:
            raise DataLoss(
                f"{why}: its copy in the target has records that the source has not. To delete the copy and begin "
                "anew, set on_loss: continue"
            )
        await self.clear(topic)
        await self._make(topic, source, count)

    async def clear(self, topic: str) -> None:
        """Delete a topic of the target, and wait until it is gone."""
        await admin.delete_topic(self._target, topic)
        given_up_at = time.monotonic() + GONE_S_MAX
        while topic in {found.name for found in await admin.list_topics(self._target)}:
            if time.monotonic() > given_up_at:
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, f"the target does not delete the topic `{topic}`")
            await asyncio.sleep(PAUSE_S)

    async def _check_epochs(self, wanted: Mapping[str, tuple[str, int]]) -> None:
        """A source that was truncated has, at offsets that were copied, other records by now, or none."""
        noted = await self._noted(wanted)
        epochs = {at: epoch for at, (_, epoch) in noted.items() if epoch >= 0}
        if not epochs:
            return
        answers = await epoch_ends(self._source, epochs)
        ends = {at: answer.offset for at, answer in answers.items() if isinstance(answer, EpochEnd)}
        cut = truncated({at: offset for at, (offset, _) in noted.items()}, ends)
        for topic in sorted({at.topic for at in cut}):
            cuts = ", ".join(f"{at} to {end}" for at, end in cut.items() if at.topic == topic)
            await self._make_anew(topic, *wanted[topic], f"the source was truncated ({cuts})")

    async def _noted(self, topics: Collection[str]) -> dict[TopicPartition, tuple[int, int]]:
        found = await group_offsets(self._target, self._copy_to.positions)
        return {at: (offset.offset, offset.leader_epoch) for at, offset in found.items() if at.topic in topics}
