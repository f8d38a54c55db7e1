"""Makes the decisions come true: decide on the newest image, write the store, decide again if someone was quicker."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

from ottla.broker.controller import writes as documents
from ottla.broker.controller.config_decisions import (
    ConfigChange,
    ConfigOutcome,
    ResourceType,
    broker_key,
    plan_config_changes,
)
from ottla.broker.controller.decisions import (
    Deletion,
    MorePartitions,
    NewTopic,
    TopicOutcome,
    automatic_topic,
    plan_deletions,
    plan_partitions,
    plan_topics,
)
from ottla.cluster.documents import PRODUCER_IDS_PATH, ProducerIdBlock, producer_ids_document, read_producer_ids
from ottla.cluster.image import TopicImage
from ottla.cluster.store import MetadataStore, VersionConflict, Write
from ottla.config.live import LiveConfig
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, TRANSACTION_STATE, new_topic_id

PRODUCER_ID_BLOCK = 1000
_ATTEMPTS_MAX = 10

R = TypeVar("R")


class Controller:
    """Every change of metadata that this broker makes goes through here, one at a time."""

    def __init__(
        self,
        store: MetadataStore,
        config: LiveConfig,
        node_id: int,
        *,
        make_id: Callable[[], UUID] = new_topic_id,
    ) -> None:
        self._store = store
        self._config = config
        self._node_id = node_id
        self._make_id = make_id
        self._turn = asyncio.Lock()
        self._producer_id_turn = asyncio.Lock()
        self._next_producer_id = 0
        self._end_of_block = 0

    async def create_topics(self, wanted: Sequence[NewTopic], *, validate_only: bool = False) -> list[TopicOutcome]:
        """Create topics; each outcome tells what became of one. With `validate_only` only tell."""

        def decide() -> tuple[list[Write], list[TopicOutcome]]:
            outcomes = plan_topics(wanted, self._store.image, self._config.broker, self._make_id)
            planned = [outcome.topic for outcome in outcomes if outcome.topic is not None]
            return [write for topic in planned for write in documents.creation_writes(topic)], outcomes

        return await self._change(decide, validate_only=validate_only)

    async def create_partitions(
        self, wanted: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[TopicOutcome]:
        """Give topics more partitions."""

        def decide() -> tuple[list[Write], list[TopicOutcome]]:
            image = self._store.image
            outcomes = plan_partitions(wanted, image)
            planned = [outcome.topic for outcome in outcomes if outcome.topic is not None]
            writes = [
                write
                for topic in planned
                for write in documents.enlargement_writes(
                    topic, len(image.topics[topic.name].partitions), self._store.version
                )
            ]
            return writes, outcomes

        return await self._change(decide, validate_only=validate_only)

    async def delete_topics(self, wanted: Sequence[tuple[str | None, UUID]]) -> list[Deletion]:
        """Delete topics given by name or by id (the other is None, or the null id)."""

        def decide() -> tuple[list[Write], list[Deletion]]:
            deletions = plan_deletions(wanted, self._store.image)
            topics = [deletion.topic for deletion in deletions if deletion.topic is not None]
            version = self._store.version
            return [write for topic in topics for write in documents.deletion_writes(topic, version)], deletions

        return await self._change(decide)

    async def alter_configs(
        self, wanted: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigOutcome]:
        """Change settings of topics, brokers and groups."""

        def decide() -> tuple[list[Write], list[ConfigOutcome]]:
            outcomes = plan_config_changes(wanted, self._store.image, self._node_id, self._config.static)
            return [write for outcome in outcomes for write in self._config_writes(outcome)], outcomes

        return await self._change(decide, validate_only=validate_only)

    async def ensure_topics(self, names: Sequence[str]) -> dict[str, ApiError]:
        """Create those topics that do not exist yet, as settings say; the result has those that cannot be."""
        image, settings = self._store.image, self._config.broker
        missing = [automatic_topic(name, image, settings) for name in names if name not in image.topics]
        outcomes = await self.create_topics(missing) if missing else []
        # One that exists by now was wanted by someone else too, who was quicker.
        return {
            outcome.name: outcome.refusal
            for outcome in outcomes
            if outcome.refusal is not None and outcome.refusal.code != ErrorCode.TOPIC_ALREADY_EXISTS
        }

    async def ensure_topic(self, name: str) -> TopicImage:
        """The topic, which is created if it does not exist. ApiError if it cannot be."""
        refusals = await self.ensure_topics([name])
        if name in refusals:
            raise refusals[name]
        topic = self._store.image.topics.get(name)
        if topic is None:  # created and deleted again in the same moment
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    async def ensure_offsets_topic(self) -> TopicImage:
        """__consumer_offsets, created on first use."""
        return await self.ensure_topic(CONSUMER_OFFSETS)

    async def ensure_transactions_topic(self) -> TopicImage:
        """__transaction_state, created on first use."""
        return await self.ensure_topic(TRANSACTION_STATE)

    async def allocate_producer_id(self) -> int:
        """A producer id that was never given out before, nor will be again, whatever crashes.

        Ids come in blocks; a block is on disk before its first id is used, and what is left of it at a stop is lost.
        """
        async with self._producer_id_turn:
            if self._next_producer_id == self._end_of_block:
                block = await self._claim_producer_ids()
                self._next_producer_id, self._end_of_block = block.first, block.last + 1
            producer_id = self._next_producer_id
            self._next_producer_id += 1
            return producer_id

    async def _claim_producer_ids(self) -> ProducerIdBlock:
        def decide() -> tuple[list[Write], ProducerIdBlock]:
            document = self._store.read(PRODUCER_IDS_PATH)
            first = 0 if document is None else read_producer_ids(document.data).last + 1
            block = ProducerIdBlock(self._node_id, first, first + PRODUCER_ID_BLOCK - 1)
            version = self._store.version(PRODUCER_IDS_PATH)
            return [Write(PRODUCER_IDS_PATH, producer_ids_document(block), version)], block

        return await self._change(decide)

    def _config_writes(self, outcome: ConfigOutcome) -> list[Write]:
        if outcome.configs is None:
            return []
        name, version = outcome.change.resource_name, self._store.version
        if outcome.change.resource_type == ResourceType.TOPIC:
            return documents.topic_config_writes(name, outcome.configs, version)
        if outcome.change.resource_type == ResourceType.GROUP:
            return documents.group_config_writes(name, outcome.configs, version)
        return documents.broker_config_writes(broker_key(name, self._node_id), outcome.configs, version)

    async def _change(self, decide: Callable[[], tuple[list[Write], R]], *, validate_only: bool = False) -> R:
        """Decide and write, one change at a time; a decision made on an old image is made anew."""
        async with self._turn:
            for _ in range(_ATTEMPTS_MAX):
                writes, result = decide()
                if validate_only or not writes:
                    return result
                try:
                    await self._store.commit(writes)
                except VersionConflict:
                    continue
                return result
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "others keep changing the same metadata; try again")
