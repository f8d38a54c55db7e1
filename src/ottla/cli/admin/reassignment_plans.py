"""The files of `kafka-reassign-partitions`: which topics to move, which brokers are to hold which partition. Pure."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.cli.common.output import CommandError
from ottla.client.admin import TopicDescription
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.model.placement import place

FORMAT_VERSION = 1
ANY_DIRECTORY = "any"
PLAN_SHAPE = '{"version": 1, "partitions": [{"topic": "news", "partition": 0, "replicas": [1, 2, 3]}]}'
TOPICS_SHAPE = '{"version": 1, "topics": [{"topic": "news"}]}'


class Placed(NamedTuple):
    """The brokers of a partition, the preferred leader first, and the directory on each of them."""

    replicas: list[int]
    directories: list[str]


Plan = Mapping[TopicPartition, Placed]


def parse_plan(text: str) -> Plan:
    """The plan in a --reassignment-json-file."""
    plan: dict[TopicPartition, Placed] = {}
    for entry in _entries(text, "partitions", PLAN_SHAPE):
        try:
            partition = TopicPartition(str(entry["topic"]), int(entry["partition"]))
            replicas = [int(broker) for broker in entry["replicas"]]
            directories = [str(path) for path in entry.get("log_dirs") or [ANY_DIRECTORY] * len(replicas)]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CommandError(f"the file must read like {PLAN_SHAPE} ({type(error).__name__}: {error})") from None
        _check(partition, replicas, directories)
        if partition in plan:
            raise CommandError(f"the file names {partition} twice")
        plan[partition] = Placed(replicas, directories)
    if not plan:
        raise CommandError("the file names no partition")
    return plan


def _check(partition: TopicPartition, replicas: list[int], directories: list[str]) -> None:
    if not replicas:
        raise CommandError(f"{partition}: the list of replicas is empty")
    if len(set(replicas)) != len(replicas):
        raise CommandError(f"{partition}: a broker is named twice in {replicas}")
    if len(directories) != len(replicas):
        raise CommandError(f"{partition} has {len(replicas)} replicas and {len(directories)} log_dirs: give one each")
    odd = [path for path in directories if path != ANY_DIRECTORY and not path.startswith("/")]
    if odd:
        raise CommandError(f"{partition}: log_dirs wants absolute paths or `{ANY_DIRECTORY}`, not `{odd[0]}`")


def parse_topics(text: str) -> list[str]:
    """The topics in a --topics-to-move-json-file."""
    try:
        names = [str(entry["topic"]) for entry in _entries(text, "topics", TOPICS_SHAPE)]
    except (KeyError, TypeError) as error:
        raise CommandError(f"the file must read like {TOPICS_SHAPE} ({type(error).__name__}: {error})") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CommandError(f"the file names topics twice: {', '.join(twice)}")
    if not names:
        raise CommandError("the file names no topic")
    return names


def _entries(text: str, key: str, shape: str) -> list[Any]:
    try:
        document = json.loads(text)
        version, entries = document.get("version", FORMAT_VERSION), list(document[key])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandError(f"the file must read like {shape} ({type(error).__name__}: {error})") from None
    if version != FORMAT_VERSION:
        raise CommandError(f"the file has version {version}, and {FORMAT_VERSION} is the one there is")
    return entries


def parse_broker_list(text: str) -> list[int]:
    try:
        brokers = [int(broker) for broker in text.split(",")]
    except ValueError:
        raise CommandError(f"--broker-list wants ids such as 1,2,3; not `{text}`") from None
    if len(set(brokers)) != len(brokers):
        raise CommandError(f"--broker-list names a broker twice: {text}")
    return brokers


def as_document(plan: Plan) -> dict[str, object]:
    """A plan as the JSON that is read again by --execute and --verify."""
    return {
        "version": FORMAT_VERSION,
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "replicas": placed.replicas,
                "log_dirs": placed.directories,
            }
            for partition, placed in sorted(plan.items())
        ],
    }


def current_plan(topics: Sequence[TopicDescription]) -> Plan:
    """Who holds what now."""
    return {
        TopicPartition(topic.name, found.partition): anywhere(found.replicas)
        for topic in topics
        for found in topic.partitions
    }


def brokers_of(plan: Plan) -> dict[TopicPartition, list[int]]:
    """A plan without its directories."""
    return {partition: placed.replicas for partition, placed in plan.items()}


def anywhere(replicas: Sequence[int]) -> Placed:
    return Placed(list(replicas), [ANY_DIRECTORY] * len(replicas))


def propose(topics: Sequence[TopicDescription], racks: Mapping[int, str | None]) -> Plan:
    """Spread topics evenly over these brokers, with as many replicas as they have. The same question has one answer."""
    if len({rack is None for rack in racks.values()}) > 1:
        raise CommandError("some brokers have a rack and some have none; --disable-rack-aware leaves racks aside")
    proposed: dict[TopicPartition, Placed] = {}
    for topic in topics:
        start = zlib.crc32(topic.name.encode()) % len(racks)
        try:
            placed = place(range(len(topic.partitions)), len(topic.partitions[0].replicas), racks, start=start)
        except ApiError as error:
            raise CommandError(f"topic {topic.name}: {error}") from None
        proposed |= {TopicPartition(topic.name, number): anywhere(brokers) for number, brokers in enumerate(placed)}
    return proposed
