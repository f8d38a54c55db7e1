"""One look at a cluster over the wire, in few requests: topics, ends of logs, groups with their commits and owners.

Each broker lists the groups that it coordinates, so nobody has to be asked where a group is: its commits and members
are asked of the broker that listed it, many groups in one request. Whoever does not answer is left out, and the reading
says so: a monitor has to see the rest of a cluster most of all when a part of it is away.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ottla.client import groups, offsets
from ottla.client.cluster import Broker, Cluster, raise_for
from ottla.model.errors import ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.monitoring.readings import GroupReading, Owner, PartitionPlace, Reading
from ottla.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.protocol.messages.metadata import MetadataResponse

T = TypeVar("T")

logger = logging.getLogger(__name__)

GROUPS_PER_REQUEST = 200


class Look(NamedTuple):
    """What one look at a cluster saw."""

    cluster_id: str
    controller_id: int
    brokers: dict[int, Broker]
    places: dict[TopicPartition, PartitionPlace]
    internal: frozenset[str]
    reading: Reading
    failures: tuple[str, ...]
    """Who did not answer, in words."""


async def look(cluster: Cluster) -> Look:
    """Raises only if no broker tells the metadata."""
    places, topics, internal = await _metadata(cluster)
    failures: list[str] = []
    found_ends, found_groups = await asyncio.gather(
        _ends(cluster, places, failures), _groups(cluster, sorted(cluster.brokers), failures)
    )
    return Look(
        cluster.cluster_id or "",
        cluster.controller_id,
        dict(cluster.brokers),
        places,
        internal,
        Reading(found_ends, found_groups, topics, whole=not failures),
        tuple(failures),
    )


async def _metadata(
    cluster: Cluster,
) -> tuple[dict[TopicPartition, PartitionPlace], dict[str, int], frozenset[str]]:
    """What is kept of it. The answer itself, which is large, is gone before others are asked for."""
    metadata = await cluster.metadata(None)
    return (
        await asyncio.to_thread(places_of, metadata, set(cluster.brokers)),
        {topic.name or "": len(topic.partitions) for topic in metadata.topics if not topic.error_code},
        frozenset(topic.name or "" for topic in metadata.topics if topic.is_internal),
    )


def places_of(metadata: MetadataResponse, alive: set[int]) -> dict[TopicPartition, PartitionPlace]:
    """Partitions that are in the same place share what says so: there are few places, and maybe 100,000 partitions."""
    known: dict[PartitionPlace, PartitionPlace] = {}
    found = {}
    for topic in metadata.topics:
        name = topic.name or ""
        for each in topic.partitions:
            leader = each.leader_id if each.leader_id in alive else None
            place = PartitionPlace(leader, tuple(each.replica_nodes), tuple(each.isr_nodes))
            found[TopicPartition(name, each.partition_index)] = known.setdefault(place, place)
    return found


async def _ends(
    cluster: Cluster, places: dict[TopicPartition, PartitionPlace], failures: list[str]
) -> dict[TopicPartition, int]:
    by_leader: dict[int, dict[TopicPartition, int]] = {}
    for partition, place in places.items():
        if place.leader is not None:
            by_leader.setdefault(place.leader, {})[partition] = offsets.LATEST
    asked = [offsets.list_offsets_of(cluster, node, wanted) for node, wanted in by_leader.items()]
    return await asyncio.to_thread(_by_their_places, await _all_that_answer(asked, failures), places)


def _by_their_places(
    told: Sequence[Mapping[TopicPartition, offsets.FoundOffset | ErrorCode]], places: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Under the names that the places have already, not under those of the answers: they would be kept twice."""
    ends: dict[TopicPartition, int] = {}
    for answers in told:
        for partition, found in answers.items():
            if isinstance(found, offsets.FoundOffset) and found.offset is not None:
                ends[partition] = found.offset
    return {partition: ends[partition] for partition in places if partition in ends}


async def _groups(cluster: Cluster, nodes: Iterable[int], failures: list[str]) -> dict[str, GroupReading]:
    told = await _all_that_answer([_groups_of(cluster, node, failures) for node in nodes], failures)
    return {name: group for groups_of_node in told for name, group in groups_of_node.items()}


async def _groups_of(cluster: Cluster, node: int, failures: list[str]) -> dict[str, GroupReading]:
    response = await cluster.call(ListGroupsRequest(), ListGroupsResponse, node=node)
    raise_for(response.error_code)
    listed = [group for group in response.groups if group.protocol_type in ("consumer", "")]
    readings: dict[str, GroupReading] = {}
    for some in batched_groups(listed):
        names = [group.group_id for group in some]
        committed, described = await asyncio.gather(
            groups.group_offsets_of(cluster, node, names), _described(cluster, node, some, failures)
        )
        for name, commits in committed.items():
            group = described.get(name)
            readings[name] = GroupReading(
                {partition: commit.offset for partition, commit in commits.items()},
                _owners(group) if group is not None else {},
                group.state if group is not None else "",
                len(group.members) if group is not None else 0,
            )
    return readings


def batched_groups(listed: Sequence[ListedGroup]) -> Iterable[Sequence[ListedGroup]]:
    for start in range(0, len(listed), GROUPS_PER_REQUEST):
        yield listed[start : start + GROUPS_PER_REQUEST]


async def _described(
    cluster: Cluster, node: int, some: Sequence[ListedGroup], failures: list[str]
) -> dict[str, groups.GroupDescription]:
    """Groups of the two protocols are described by two requests. Only those that have members are worth asking for."""
    by_kind: dict[str, list[str]] = {}
    for group in some:
        if group.group_state != "Empty":
            kind = groups.CONSUMER if group.group_type.lower() == "consumer" else groups.CLASSIC
            by_kind.setdefault(kind, []).append(group.group_id)
    asked = [groups.describe_groups_of(cluster, node, names, kind=kind) for kind, names in by_kind.items()]
    found: dict[str, groups.GroupDescription] = {}
    for answers in await _all_that_answer(asked, failures):
        found |= answers
    return found


def _owners(group: groups.GroupDescription) -> dict[TopicPartition, Owner]:
    return {
        partition: Owner(member.host.removeprefix("/"), member.client_id)
        for member in group.members
        for partition in member.assignment
    }


async def _all_that_answer(asked: Iterable[Awaitable[T]], failures: list[str]) -> list[T]:
    answers = []
    for answer in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(answer, OttlaError):
            failures.append(str(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            answers.append(answer)
    return answers
