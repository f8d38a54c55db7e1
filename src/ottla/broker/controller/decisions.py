"""Requests to create, enlarge or delete topics. Pure: image and settings in, new images or refusals out.

A refusal is an ApiError with Kafka's code and a sentence for people. Refused topics do not stop the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar
from uuid import UUID

from ottla.broker.controller.elections import new_partition
from ottla.broker.controller.reassignments import target_of
from ottla.broker.quotas.mutations import Charge
from ottla.cluster.image import ClusterImage, TopicImage
from ottla.config.broker import BrokerSettings
from ottla.config.setting import ConfigError
from ottla.config.topic import validate_topic_overrides
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, NO_TOPIC_ID, TRANSACTION_STATE, check_topic_name
from ottla.model.placement import Racks, place, start_of

PARTITIONS_PER_REQUEST_MAX = 10_000
USE_DEFAULT = -1
KRAFT_METADATA = "__cluster_metadata"


class NewTopic(NamedTuple):
    """A topic that someone wants. -1 stands for the default; `assignments` maps partitions to their brokers."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


class MorePartitions(NamedTuple):
    """A topic that is to have `total` partitions; `assignments` gives the brokers of each new one."""

    name: str
    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicOutcome(NamedTuple):
    """What was decided about one topic: the topic as it is to be, or the refusal."""

    name: str
    topic: TopicImage | None
    refusal: ApiError | None


class Deletion(NamedTuple):
    """What was decided about one topic that someone wants deleted; `topic` is the one to delete, if any."""

    name: str | None
    topic_id: UUID
    topic: TopicImage | None
    refusal: ApiError | None


Decided = TypeVar("Decided", TopicOutcome, Deletion)


def charged(outcome: Decided, charge: Charge | None, before: TopicImage | None = None) -> Decided:
    """The same, or that the client has used up its quota for creating and deleting partitions."""
    if charge is not None and outcome.topic is not None:
        try:
            charge(outcome.topic.name, len(outcome.topic.partitions) - (len(before.partitions) if before else 0))
        except ApiError as refusal:
            return outcome._replace(topic=None, refusal=refusal)
    return outcome


def plan_topics(
    wanted: Sequence[NewTopic],
    image: ClusterImage,
    settings: BrokerSettings,
    make_id: Callable[[], UUID],
    pick_start: Callable[[ClusterImage], int] = lambda image: 0,
) -> list[TopicOutcome]:
    """Decide on new topics, in the order asked; a name that is asked for twice is refused once.

    `pick_start` chooses for each topic where the round of its leaders begins: small topics are to differ in that.
    """
    _limit(
        len(new.assignments) or (settings.num_partitions if new.partitions == USE_DEFAULT else new.partitions)
        for new in wanted
    )
    times = Counter(new.name for new in wanted)
    taken = {_unified(name): name for name in image.topics if _ambiguous(name)}
    outcomes: dict[str, TopicOutcome] = {}
    for new in wanted:
        if new.name in outcomes:
            continue
        try:
            if times[new.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
            _check_new_name(new.name, image, taken)
            outcomes[new.name] = TopicOutcome(new.name, _new_topic(new, image, settings, make_id, pick_start), None)
            if _ambiguous(new.name):
                taken[_unified(new.name)] = new.name
        except ApiError as refusal:
            outcomes[new.name] = TopicOutcome(new.name, None, refusal)
    return list(outcomes.values())


def plan_partitions(wanted: Sequence[MorePartitions], image: ClusterImage) -> list[TopicOutcome]:
    """Decide on more partitions for topics that exist."""
    known = image.topics
    _limit(more.total - len(known[more.name].partitions) for more in wanted if more.name in known)
    times = Counter(more.name for more in wanted)
    outcomes: dict[str, TopicOutcome] = {}
    for more in wanted:
        if more.name in outcomes:
            continue
        try:
            if times[more.name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic more than once")
            outcomes[more.name] = TopicOutcome(more.name, _enlarged(more, image), None)
        except ApiError as refusal:
            outcomes[more.name] = TopicOutcome(more.name, None, refusal)
    return list(outcomes.values())


def plan_deletions(wanted: Sequence[tuple[str | None, UUID]], image: ClusterImage) -> list[Deletion]:
    """Decide on deletions. Each topic is given by name or by id, not both, and only once."""
    times = Counter(wanted)
    decided: dict[tuple[str | None, UUID], Deletion] = {}
    chosen: set[UUID] = set()
    for key in wanted:
        if key in decided:
            continue
        name, topic_id = key
        try:
            topic = _to_delete(name, topic_id, image)
            if times[key] > 1:
                what = "topic name" if name is not None else "topic id"
                raise ApiError(ErrorCode.INVALID_REQUEST, f"the request has this {what} more than once")
            if topic.topic_id in chosen:
                raise ApiError(ErrorCode.INVALID_REQUEST, "the request names this topic by name and by id")
            chosen.add(topic.topic_id)
            decided[key] = Deletion(topic.name, topic.topic_id, topic, None)
        except ApiError as refusal:
            decided[key] = Deletion(name, topic_id, None, refusal)
    return list(decided.values())


def automatic_topic(name: str, image: ClusterImage, settings: BrokerSettings) -> NewTopic:
    """The topic that comes into being because someone used its name."""
    if name == TRANSACTION_STATE:
        return _transactions_topic(image, settings)
    if name != CONSUMER_OFFSETS:
        return NewTopic(name)
    return NewTopic(
        name,
        partitions=settings.offsets_topic_num_partitions,
        replication_factor=max(1, min(settings.offsets_topic_replication_factor, len(image.brokers))),
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(settings.offsets_topic_segment_bytes)),
        ),
    )


def _transactions_topic(image: ClusterImage, settings: BrokerSettings) -> NewTopic:
    replicas = max(1, min(settings.transaction_state_log_replication_factor, len(image.brokers)))
    return NewTopic(
        TRANSACTION_STATE,
        partitions=settings.transaction_state_log_num_partitions,
        replication_factor=replicas,
        configs=(
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(min(settings.transaction_state_log_min_isr, replicas))),
            ("segment.bytes", str(settings.transaction_state_log_segment_bytes)),
            ("unclean.leader.election.enable", "false"),
        ),
    )


def racks_of(image: ClusterImage) -> Racks:
    """The brokers that new replicas may go to."""
    return {broker.id: broker.rack for broker in image.brokers.values()}


def _limit(counts: Iterable[int]) -> None:
    if sum(max(count, 0) for count in counts) > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"one request may ask for {PARTITIONS_PER_REQUEST_MAX} partitions at most"
        )


def _ambiguous(name: str) -> bool:
    return "." in name or "_" in name


def _unified(name: str) -> str:
    return name.replace(".", "_")


def _check_new_name(name: str, image: ClusterImage, taken: Mapping[str, str]) -> None:
    check_topic_name(name)
    if name == KRAFT_METADATA:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} is reserved")
    if name in image.topics:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' already exists")
    if name in image.deleting:
        raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic '{name}' is still being deleted")
    other = taken.get(_unified(name)) if _ambiguous(name) else None
    if other is not None:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic '{name}' differs from topic '{other}' by '.' and '_' alone"
        )


def _new_topic(
    new: NewTopic,
    image: ClusterImage,
    settings: BrokerSettings,
    make_id: Callable[[], UUID],
    pick_start: Callable[[ClusterImage], int],
) -> TopicImage:
    configs = dict(new.configs)
    try:
        validate_topic_overrides(configs)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, "; ".join(error.problems)) from None
    replicas = _assigned(new, image) if new.assignments else _placed(new, image, settings, pick_start(image))
    partitions = tuple(new_partition(brokers, image.brokers) for brokers in replicas)
    return TopicImage(
        new.name, make_id(), partitions, {name: text for name, text in configs.items() if text is not None}
    )


def _placed(new: NewTopic, image: ClusterImage, settings: BrokerSettings, start: int) -> list[tuple[int, ...]]:
    factor = new.replication_factor
    if factor < USE_DEFAULT or factor == 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, f"the replication factor must be 1 or more, or -1, not {factor}"
        )
    if new.partitions < USE_DEFAULT or new.partitions == 0:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"the number of partitions must be 1 or more, or -1, not {new.partitions}"
        )
    count = settings.num_partitions if new.partitions == USE_DEFAULT else new.partitions
    factor = settings.default_replication_factor if factor == USE_DEFAULT else factor
    return place(range(count), factor, racks_of(image), start=start)


def _assigned(new: NewTopic, image: ClusterImage) -> list[tuple[int, ...]]:
    if new.replication_factor != USE_DEFAULT or new.partitions != USE_DEFAULT:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "with an assignment of replicas, the number of partitions and the replication factor must be -1",
        )
    by_partition: dict[int, tuple[int, ...]] = {}
    factor = len(new.assignments[0][1])
    for partition, brokers in new.assignments:
        if partition in by_partition:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {partition} is assigned twice")
        by_partition[partition] = _checked_replicas(brokers, factor, image)
    if set(by_partition) != set(range(len(by_partition))):
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be numbered from 0 without gaps")
    return [by_partition[number] for number in range(len(by_partition))]


def _checked_replicas(brokers: Sequence[int], factor: int, image: ClusterImage) -> tuple[int, ...]:
    problem = None
    if not brokers:
        problem = "an assignment of replicas is empty"
    elif len(set(brokers)) != len(brokers):
        problem = f"an assignment names a broker twice: {list(brokers)}"
    elif unknown := [broker for broker in brokers if broker not in image.brokers]:
        problem = f"an assignment names broker {unknown[0]}, which is not running"
    elif len(brokers) != factor:
        problem = f"an assignment has {len(brokers)} replicas where the other partitions have {factor}"
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
    return tuple(brokers)


def _enlarged(more: MorePartitions, image: ClusterImage) -> TopicImage:
    topic = image.topics.get(more.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{more.name}'")
    have = len(topic.partitions)
    if more.total <= have:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"topic '{more.name}' has {have} partitions; {more.total} is not an increase"
        )
    factor = len(target_of(topic.partitions[0]))
    if more.assignments is None:
        brokers = racks_of(image)
        added = place(range(have, more.total), factor, brokers, start=start_of(topic.partitions[0].replicas, brokers))
    elif len(more.assignments) != more.total - have:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{more.total - have} partitions are to be added, but {len(more.assignments)} are assigned",
        )
    else:
        added = [_checked_replicas(brokers, factor, image) for brokers in more.assignments]
    partitions = topic.partitions + tuple(new_partition(brokers, image.brokers) for brokers in added)
    return TopicImage(topic.name, topic.topic_id, partitions, topic.configs)


def _to_delete(name: str | None, topic_id: UUID, image: ClusterImage) -> TopicImage:
    if name is None:
        if topic_id == NO_TOPIC_ID:
            raise ApiError(ErrorCode.INVALID_REQUEST, "neither a topic name nor a topic id is given")
        topic = image.topic_by_id(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID, "there is no topic with this id")
        return topic
    if topic_id != NO_TOPIC_ID:
        raise ApiError(ErrorCode.INVALID_REQUEST, "give the topic's name or its id, not both")
    topic = image.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    return topic
