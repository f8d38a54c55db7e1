"""A standby becomes the cluster that clients use.

1. The topics' `mirror.source` says so: from then on the leaders take nothing from the mirror, nor from producers. Each
   leader is asked until it has heard of it, so where a log ends then is where both clusters part.
2. That place is noted in the group `….promoted`: it is what a failback compares with.
3. Transactions that are open there are aborted: the end of theirs, if there was one, did not arrive.
4. The setting goes, and producers may write. Their ids are none that the records bear: the brokers saw to that while
   they were appended.

Done twice it does what is left to do. The source need not be there.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ottla.client import admin
from ottla.client.admin import Resource, ResourceType
from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.mirrored import bounds_once_heard
from ottla.client.settings import client_settings
from ottla.client.transactions import describe_producers, write_abort_marker
from ottla.config.topic import PROMOTING
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.flows import IDS, connected, group_of, state_folder
from ottla.pipelines.mirror.following import MirroredTopics, Seen, mirrored_topics, source_ends
from ottla.pipelines.mirror.keeping import SEEN
from ottla.pipelines.mirror.spec import Flow, Mirror
from ottla.pipelines.mirror.standby import promoted_group
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.words import SETTING

SOURCE_S_MAX = 5.0
"""So long the source may take to answer; a cluster that is lost never does."""


class NotPromoted(PipelineError):
    """There is nothing to promote, or something must be done before."""


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    flow: str
    topics: list[str]
    ends: dict[str, int]
    """Where each partition's copy ends: what is before that was replicated."""
    source_answers: bool
    missing_records: int | None
    """What the source had beyond that, now or when it was last seen; None if that is not known."""
    missing_topics: list[str]
    """Topics of the source that had not come to the target at all. Their records count as missing."""
    seen_seconds_ago: float | None
    """How long ago that was; 0 if the source answers."""
    whole_seconds_ago: float | None
    """Everything that the source had so many seconds ago is here; None if that is not known."""
    aborted_transactions: int


def missing(ends: Mapping[TopicPartition, int], source: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, end - ends.get(at, 0)) for at, end in source.items())


def promote(mirror: Mirror, flow: Flow, path: Path, state_dir: Path) -> Promoted:
    deployment, folder = connected(mirror, flow, path, state_dir), state_folder(mirror, flow, state_dir)
    if not flow.is_standby:
        raise NotPromoted(f"{flow.name} has no `offsets: keep`: its topics can be written to as they are")
    ids = folder.read(IDS) or {}
    target = shared_cluster(client_settings(deployment.kafka(flow.target)), patient=False)
    clusters = sorted(mirror.clusters)

    def takes(topic: str) -> bool:
        return naming.takes(flow, topic, clusters)

    found = loop.run(mirrored_topics(target, takes, ids.get("source")))
    if not found.sources:
        raise NotPromoted(
            f"there is no topic of {flow.name} in {flow.target} with the setting {SETTING}: all of them are promoted "
            "already, or the mirror has not copied any yet (see `ottla mirror status`)"
        )
    of = {value.removeprefix(PROMOTING).rpartition("/")[0] for value in found.sources.values()}
    if len(of) > 1:
        raise NotPromoted(
            f"the topics are mirrors of several clusters ({', '.join(sorted(of))}): name them in `topics`"
        )
    source = shared_cluster(client_settings(deployment.kafka(flow.source)), patient=False)
    seen = folder.read(SEEN)
    known = _Known(source, takes, msgspec.convert(seen, Seen) if seen else None)
    return loop.run(_promote(flow, known, target, found, group_of(mirror, flow)))


class _Known(NamedTuple):
    """Where to ask what the source has, and what is known of it if it does not answer."""

    source: Cluster
    takes: Callable[[str], bool]
    seen: Seen | None


async def _promote(flow: Flow, known: _Known, target: Cluster, found: MirroredTopics, group: str) -> Promoted:
    seen = known.seen
    fenced = {topic: _promoting(value) for topic, value in found.sources.items()}
    for topic, value in fenced.items():
        await admin.alter_configs(target, Resource(ResourceType.TOPIC, topic), add={SETTING: value})
    ends = {at: (await bounds_once_heard(target, at, fenced[at.topic])).end for at in found.partitions}
    moment = time.time()
    shared = await _shared(target, promoted_group(group), found, ends)
    aborted = await _abort_open(target, found.partitions)
    for topic in fenced:
        await admin.alter_configs(target, Resource(ResourceType.TOPIC, topic), delete=[SETTING])
    # The source last: clients can go on while nobody knows whether it will answer.
    now_there = await _ends_of(known, found)
    before = seen if now_there is None else None
    last = now_there if now_there is not None else None if before is None else _ends(before)
    lost = None if last is None else missing(shared, last)
    whole = None if seen is None else seen.whole_at
    if lost == 0:  # nothing was missing when the source was last asked
        whole = moment if before is None else before.at
    return Promoted(
        flow=flow.name,
        topics=sorted(fenced),
        ends={str(at): end for at, end in sorted(shared.items())},
        source_answers=now_there is not None,
        missing_records=lost,
        missing_topics=sorted({at.topic for at in last or ()} - fenced.keys()),
        seen_seconds_ago=0.0 if now_there is not None else None if before is None else moment - before.at,
        whole_seconds_ago=None if whole is None else max(0.0, moment - whole),
        aborted_transactions=aborted,
    )


def _promoting(value: str) -> str:
    return value if value.startswith(PROMOTING) else f"{PROMOTING}{value}"


async def _shared(
    target: Cluster, group: str, found: MirroredTopics, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int]:
    """Note where the clusters part. If a promotion is taken up again it is noted already, and markers came since."""
    noted = {at: each.offset for at, each in (await group_offsets(target, group)).items()}
    shared = {
        at: noted.get(at, end) if found.sources[at.topic].startswith(PROMOTING) else end for at, end in ends.items()
    }
    await commit_offsets(target, group, shared)
    return shared


async def _ends_of(known: _Known, found: MirroredTopics) -> dict[TopicPartition, int] | None:
    """What the source has now; None if it does not answer."""
    try:
        asked = source_ends(known.source, known.takes, found, committed=False)
        return await asyncio.wait_for(asked, SOURCE_S_MAX)
    except (OttlaError, OSError, TimeoutError):
        return None


def _ends(seen: Seen) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(number)): end for topic, ends in seen.ends.items() for number, end in ends.items()
    }


async def _abort_open(target: Cluster, partitions: Iterable[TopicPartition]) -> int:
    """The coordinators of these are in the other cluster: nobody else would ever end them, nor read behind them."""
    count = 0
    for at, producers in (await describe_producers(target, [*partitions])).items():
        if isinstance(producers, ErrorCode):
            raise ApiError(producers, f"{at} does not tell its open transactions: {producers.name}")
        for producer in producers:
            if producer.current_txn_start_offset >= 0:
                await write_abort_marker(
                    target, at, producer.producer_id, producer.producer_epoch, max(0, producer.coordinator_epoch)
                )
                count += 1
    return count
