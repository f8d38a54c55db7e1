"""Carries out what clients ask for: decide on the newest image, write the store, decide again if someone was quicker.

Any broker may do this: compare-and-set makes it safe. What then follows by itself (leaders of large new topics, the
steps of a move) is the work of the one broker that is the controller, in leading.py.
"""

import asyncio
import random
import secrets
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from ottla.broker.controller import writes as documents
from ottla.broker.controller.acl_decisions import AclOutcome, acl_writes, plan_additions, plan_removals, removed_by
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
    charged,
    plan_deletions,
    plan_partitions,
    plan_topics,
)
from ottla.broker.controller.holders import Place
from ottla.broker.controller.partition_changes import PartitionChanges, Tally
from ottla.broker.controller.partition_decisions import (
    ElectionType,
    Move,
    decide_election,
    decide_move,
    known_partition,
)
from ottla.broker.controller.waiting import until
from ottla.broker.quotas.mutations import Charge
from ottla.cluster.documents import PRODUCER_IDS_PATH, ProducerIdBlock, producer_ids_document, read_producer_ids
from ottla.cluster.image import CLUSTER_WIDE, NO_LEADER, ClusterImage, Entity, PartitionImage, TopicImage
from ottla.cluster.store import ABSENT, MetadataStore, VersionConflict, Write
from ottla.cluster.token_documents import DelegationToken, token_document, token_path
from ottla.config.broker import BrokerSettings
from ottla.config.live import LiveConfig, with_dynamic
from ottla.config.per_listener import is_per_listener
from ottla.config.stored_passwords import decoded, encoded
from ottla.model.acls import AclBinding, AclFilter
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import CONSUMER_OFFSETS, TRANSACTION_STATE, new_topic_id

PRODUCER_ID_BLOCK = 1000
CREATION_WAIT_MS = 30_000
_ATTEMPTS_MAX = 10
_PAUSE_SECONDS_MIN = 0.005
_PAUSE_SECONDS_MAX = 1.0

R = TypeVar("R")

AlterEntity = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From the settings that an entity has now to those that it is to have; ApiError refuses."""


class Step(NamedTuple, Generic[R]):
    """One thing that was decided, with the documents that make it true together. `key` tells it from the others."""

    key: Hashable
    outcome: R
    writes: Sequence[Write] = ()


Decide = Callable[[Collection[Hashable]], list[Step[R]]]
"""Decides on everything that was asked for, except what has these keys: that is done."""


class Controller:
    """Every change of metadata that a client of this broker asks for goes through here, one at a time."""

    def __init__(
        self,
        store: MetadataStore,
        config: LiveConfig,
        node_id: int,
        clock: Clock,
        *,
        chance: random.Random | None = None,
    ) -> None:
        self._store = store
        self._config = config
        self._node_id = node_id
        self._clock = clock
        self._chance = chance or random.Random()  # noqa: S311 (where a round begins is no secret)
        self.check_own_settings: Callable[[BrokerSettings], None] | None = None
        """Told of settings of this broker's listeners before they are written; OttlaError refuses them."""
        self._turn = asyncio.Lock()
        self._producer_id_turn = asyncio.Lock()
        self._next_producer_id = 0
        self._end_of_block = 0

    async def create_topics(
        self,
        wanted: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        wait_ms: int = CREATION_WAIT_MS,
        charge: Charge | None = None,
    ) -> list[TopicOutcome]:
        """Create topics; each outcome tells what became of one. With `validate_only` only tell.

        A topic is answered when it has leaders, or as timed out when it has none within `wait_ms`. `charge` is told of
        the partitions of each and may refuse it.
        """

        def decide(done: Collection[Hashable]) -> list[Step[TopicOutcome]]:
            remaining = [new for new in wanted if new.name not in done]
            image, settings = self._store.image, self._config.broker
            outcomes = plan_topics(remaining, image, settings, self._make_id, self._pick_start)
            outcomes = [charged(outcome, charge) for outcome in outcomes]
            return [
                Step(outcome.name, outcome, () if outcome.topic is None else documents.creation_writes(outcome.topic))
                for outcome in outcomes
            ]

        outcomes = await self._change(decide, validate_only=validate_only)
        return outcomes if validate_only else await self._when_led(outcomes, wait_ms)

    async def create_partitions(
        self,
        wanted: Sequence[MorePartitions],
        *,
        validate_only: bool = False,
        wait_ms: int = CREATION_WAIT_MS,
        charge: Charge | None = None,
    ) -> list[TopicOutcome]:
        """Give topics more partitions."""

        def decide(done: Collection[Hashable]) -> list[Step[TopicOutcome]]:
            image, version = self._store.image, self._store.version
            outcomes = plan_partitions([more for more in wanted if more.name not in done], image)
            outcomes = [charged(outcome, charge, image.topics.get(outcome.name)) for outcome in outcomes]
            return [
                Step(
                    outcome.name,
                    outcome,
                    ()
                    if outcome.topic is None
                    else documents.enlargement_writes(
                        outcome.topic, len(image.topics[outcome.name].partitions), version
                    ),
                )
                for outcome in outcomes
            ]

        outcomes = await self._change(decide, validate_only=validate_only)
        return outcomes if validate_only else await self._when_led(outcomes, wait_ms)

    async def delete_topics(
        self, wanted: Sequence[tuple[str | None, UUID]], charge: Charge | None = None
    ) -> list[Deletion]:
        """Delete topics given by name or by id (the other is None, or the null id)."""

        def decide(done: Collection[Hashable]) -> list[Step[Deletion]]:
            remaining = [each for each in wanted if each not in done]
            version = self._store.version
            deletions = [charged(deletion, charge) for deletion in plan_deletions(remaining, self._store.image)]
            return [
                Step(
                    key, deletion, () if deletion.topic is None else documents.deletion_writes(deletion.topic, version)
                )
                for key, deletion in zip(dict.fromkeys(remaining), deletions, strict=True)
            ]

        return await self._change(decide)

    async def alter_configs(
        self, wanted: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigOutcome]:
        """Change settings of topics, brokers and groups."""

        def decide(done: Collection[Hashable]) -> list[Step[ConfigOutcome]]:
            remaining = [change for number, change in enumerate(wanted) if number not in done]
            keys = [number for number in range(len(wanted)) if number not in done]
            outcomes = plan_config_changes(remaining, self._store.image, self._node_id, self._config.static)
            outcomes = [self._checked_here(outcome) for outcome in outcomes]
            return [
                Step(key, outcome, self._config_writes(outcome)) for key, outcome in zip(keys, outcomes, strict=True)
            ]

        return await self._change(decide, validate_only=validate_only)

    def _checked_here(self, outcome: ConfigOutcome) -> ConfigOutcome:
        """The outcome, or the refusal of settings of this broker that it could not put in force."""
        change, configs, _ = outcome
        if configs is None or change.resource_type != ResourceType.BROKER or not change.resource_name:
            return outcome
        if not any(is_per_listener(alteration.name) for alteration in change.alterations):
            return outcome
        try:
            if broker_key(change.resource_name) != str(self._node_id):
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"listeners of broker {change.resource_name} are checked and changed there only; this is "
                    f"broker {self._node_id}",
                )
            cluster_wide = self._store.image.broker_configs.get(CLUSTER_WIDE, {})
            if self.check_own_settings is not None:
                plain = decoded(configs, self._config.static).configs
                self.check_own_settings(with_dynamic(self._config.static, cluster_wide, plain))
            kept = encoded(configs, self._config.static, secrets.token_bytes)
        except ApiError as refusal:
            return ConfigOutcome(change, None, refusal)
        except OttlaError as error:
            return ConfigOutcome(change, None, ApiError(ErrorCode.INVALID_REQUEST, str(error)))
        return ConfigOutcome(change, kept, None)

    async def alter_entities(
        self, wanted: Mapping[Entity, AlterEntity], *, validate_only: bool = False
    ) -> dict[Entity, ApiError]:
        """Change settings of users, clients and addresses. The result has those that are refused."""

        def holders(done: Collection[Hashable]) -> list[Step[None]]:
            version = self._store.version
            found = {
                write.path: write for entity in wanted for write in documents.entity_holder_writes(entity, version)
            }
            return [Step(path, None, [write]) for path, write in found.items() if path not in done]

        def decide(done: Collection[Hashable]) -> list[Step[tuple[Entity, ApiError | None]]]:
            configs, version = self._store.image.entity_configs, self._store.version
            steps: list[Step[tuple[Entity, ApiError | None]]] = []
            for entity, alter in wanted.items():
                if entity in done:
                    continue
                try:
                    writes = documents.entity_config_writes(entity, alter(configs.get(entity, {})), version)
                    steps.append(Step(entity, (entity, None), writes))
                except ApiError as refusal:
                    steps.append(Step(entity, (entity, refusal)))
            return steps

        if not validate_only:
            await self._change(holders)
        outcomes = await self._change(decide, validate_only=validate_only)
        return {entity: refusal for entity, refusal in outcomes if refusal is not None}

    async def alter_token(
        self, token_id: str, alter: Callable[[DelegationToken | None], DelegationToken | None]
    ) -> DelegationToken | None:
        """Write or (None) delete a delegation token, from what it is now. ApiError if `alter` refuses."""

        def decide(done: Collection[Hashable]) -> list[Step[DelegationToken | None]]:
            token, path = alter(self._store.image.tokens.get(token_id)), token_path(token_id)
            document, version = None if token is None else token_document(token), self._store.version(path)
            writes = [] if document is None and version == ABSENT else [Write(path, document, version)]
            return [Step(token_id, token, writes)] if token_id not in done else []

        (token,) = await self._change(decide)
        return token

    async def create_acls(self, wanted: Sequence[AclBinding]) -> None:
        """Add rules. They are in force here when this returns, on other brokers when they have heard of it."""
        await self._change_acls(lambda done: plan_additions(wanted, self._store.image.acls, done))

    async def delete_acls(self, wanted: Sequence[AclFilter]) -> list[list[AclBinding]]:
        """Remove rules; tells for each filter which."""
        outcomes = await self._change_acls(lambda done: plan_removals(wanted, self._store.image.acls, done))
        return removed_by(wanted, outcomes)

    async def _change_acls(self, plan: Callable[[Collection[Hashable]], list[AclOutcome]]) -> list[AclOutcome]:
        def decide(done: Collection[Hashable]) -> list[Step[AclOutcome]]:
            acls, version = self._store.image.acls, self._store.version
            return [Step(outcome.pattern, outcome, acl_writes(outcome, acls, version)) for outcome in plan(done)]

        return await self._change(decide)

    async def move_partitions(self, wanted: Mapping[Place, Move]) -> dict[Place, ApiError]:
        """Begin, change or give up the moves of partitions. The result has those that are refused."""

        def decide(place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
            return decide_move(wanted[place], partition, image)

        return await self._change_partitions(list(wanted), decide)

    async def elect_leaders(self, kind: ElectionType, places: Sequence[Place]) -> dict[Place, ApiError]:
        """Elect leaders of these partitions. The result has those for which there was no election, with the reason."""

        def decide(_place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
            return decide_election(kind, partition, image)

        return await self._change_partitions(places, decide)

    async def ensure_topics(self, names: Sequence[str], charge: Charge | None = None) -> dict[str, ApiError]:
        """Create those topics that do not exist yet, as settings say; the result has those that cannot be."""
        image, settings = self._store.image, self._config.broker
        missing = [automatic_topic(name, image, settings) for name in names if name not in image.topics]
        outcomes = await self.create_topics(missing, charge=charge) if missing else []
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
            # A block that was taken before another cluster's ids came is given out only from behind them.
            self._next_producer_id = min(max(self._next_producer_id, self.mirrored_ids + 1), self._end_of_block)
            if self._next_producer_id == self._end_of_block:
                block = await self._claim_producer_ids()
                self._next_producer_id, self._end_of_block = block.first, block.last + 1
            producer_id = self._next_producer_id
            self._next_producer_id += 1
            return producer_id

    @property
    def mirrored_ids(self) -> int:
        """Producer ids up to this one are not given out: records of another cluster bear them."""
        return self._last_block().mirrored

    async def keep_ids_free(self, highest: int) -> None:
        """Never give out ids up to this one, nor for a while above it: those will come next."""
        async with self._producer_id_turn:
            if highest > self.mirrored_ids:
                await self._claim_producer_ids(highest + PRODUCER_ID_BLOCK)

    def _last_block(self) -> ProducerIdBlock:
        document = self._store.read(PRODUCER_IDS_PATH)
        return ProducerIdBlock(self._node_id, 0, -1) if document is None else read_producer_ids(document.data)

    async def _claim_producer_ids(self, mirrored: int = -1) -> ProducerIdBlock:
        """The next block; or, with `mirrored`, only note that these belong to another cluster."""

        def decide(_done: Collection[Hashable]) -> list[Step[ProducerIdBlock]]:
            last = self._last_block()
            first = max(last.last, last.mirrored) + 1
            block = ProducerIdBlock(self._node_id, first, first + PRODUCER_ID_BLOCK - 1, last.mirrored)
            if mirrored >= 0:
                block = ProducerIdBlock(last.broker, last.first, last.last, max(last.mirrored, mirrored))
            version = self._store.version(PRODUCER_IDS_PATH)
            return [Step(first, block, [Write(PRODUCER_IDS_PATH, producer_ids_document(block), version)])]

        (block,) = await self._change(decide)
        return block

    def _config_writes(self, outcome: ConfigOutcome) -> list[Write]:
        if outcome.configs is None:
            return []
        name, version = outcome.change.resource_name, self._store.version
        if outcome.change.resource_type == ResourceType.TOPIC:
            return documents.topic_config_writes(name, outcome.configs, version)
        if outcome.change.resource_type == ResourceType.GROUP:
            return documents.group_config_writes(name, outcome.configs, version)
        if outcome.change.resource_type == ResourceType.CLIENT_METRICS:
            return documents.client_metrics_writes(name, outcome.configs, version)
        return documents.broker_config_writes(broker_key(name), outcome.configs, version)

    def _make_id(self) -> UUID:
        return new_topic_id(self._chance.randbytes)

    def _pick_start(self, image: ClusterImage) -> int:
        return self._chance.randrange(max(1, len(image.brokers)))

    async def _when_led(self, outcomes: list[TopicOutcome], wait_ms: int) -> list[TopicOutcome]:
        """The outcomes, those of topics that still lack leaders after this time as timed out."""
        made = {outcome.name: outcome.topic for outcome in outcomes if outcome.topic is not None}

        def without_leaders(image: ClusterImage) -> set[str]:
            return {name for name, topic in made.items() if _waits_for_leaders(image.topics.get(name), topic)}

        if await until(self._store, lambda image: not without_leaders(image), wait_ms):
            return outcomes
        leaderless, why = without_leaders(self._store.image), "the topic exists, but its partitions have no leaders yet"
        return [
            TopicOutcome(outcome.name, None, ApiError(ErrorCode.REQUEST_TIMED_OUT, why))
            if outcome.name in leaderless
            else outcome
            for outcome in outcomes
        ]

    async def _change_partitions(
        self,
        places: Sequence[Place],
        decide: Callable[[Place, PartitionImage, ClusterImage], PartitionImage | None],
    ) -> dict[Place, ApiError]:
        refusals: dict[Place, ApiError] = {}

        def decide_or_note(place: Place, partition: PartitionImage, image: ClusterImage) -> PartitionImage | None:
            refusals.pop(place, None)  # it may have been refused on an earlier image
            try:
                return decide(place, partition, image)
            except ApiError as refusal:
                refusals[place] = refusal
                return None

        work = PartitionChanges(self._store, self._clock, decide_or_note)
        for place in places:
            try:
                known_partition(self._store.image, *place)
                work.due[place] = None
            except ApiError as refusal:
                refusals[place] = refusal
        async with self._turn:
            await work.work_off(Tally())
        return refusals

    async def _change(self, decide: Decide[R], *, validate_only: bool = False) -> list[R]:
        """Decide and write, one change at a time; what was decided on an old image is decided anew."""
        done: dict[Hashable, R] = {}
        pause = _PAUSE_SECONDS_MIN
        async with self._turn:
            for _ in range(_ATTEMPTS_MAX):
                steps = decide(done)
                if validate_only:
                    return [step.outcome for step in steps]
                try:
                    for piece in _pieces(steps):
                        writes = [write for step in piece for write in step.writes]
                        if writes:
                            await self._store.commit(writes)
                        done.update((step.key, step.outcome) for step in piece)
                except VersionConflict:
                    # The picture that shows who was quicker may still be on its way.
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _PAUSE_SECONDS_MAX)
                    continue
                return list(done.values())
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "others keep changing the same metadata; try again")


def _pieces(steps: Sequence[Step[R]]) -> Iterator[list[Step[R]]]:
    """Steps that are committed together: as many as one commit holds."""
    piece: list[Step[R]] = []
    size = 0
    for step in steps:
        if piece and size + len(step.writes) > documents.WRITES_AT_ONCE:
            yield piece
            piece, size = [], 0
        piece.append(step)
        size += len(step.writes)
    if piece:
        yield piece


def _waits_for_leaders(now: TopicImage | None, made: TopicImage) -> bool:
    """A topic that was deleted or made anew meanwhile is waited for no more."""
    if now is None or now.topic_id != made.topic_id:
        return False
    return any(partition.leader == NO_LEADER for partition in now.partitions)
