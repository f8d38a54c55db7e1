"""The way back: the cluster that was active, and is there again, becomes the standby of the one that took over.

The simplest that is right: its topics are deleted, and copied anew from the other cluster, by a flow in the other
direction. What it has that the other never got (`Tail`) goes with them, so it is told first, and deleted only if that
was asked for. Cutting the logs back to what both have would save the copying; leaders and followers cannot do it while
they run, and a record that was kept by mistake would be there for ever.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.groups import group_offsets
from ottla.client.mirrored import TakesBatches, takes_batches
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition
from ottla.pipelines.errors import PipelineError
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.flows import cluster_id, connected, group_of, state_folder
from ottla.pipelines.mirror.following import mirrored_topics
from ottla.pipelines.mirror.spec import Flow, Mirror
from ottla.pipelines.mirror.standby import positions_group, promoted_group
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.preparing import Preparing
from ottla.spark.reading import resolving
from ottla.spark.reading.flow_option import CopyTo


class NotFailedBack(PipelineError):
    """The old active cluster cannot become a standby yet."""


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were written to the old active cluster and never reached the standby."""

    partition: str
    first: int
    records: int


class FailedBack(msgspec.Struct, frozen=True, kw_only=True):
    flow: str
    topics: list[str]
    discarded: list[Tail]


def reversed_file(values: Mapping[str, Any], flows: list[str]) -> dict[str, Any]:
    """The mirror's file with these flows turned round, and no others."""
    turned = [
        {**flow, "from": flow["to"], "to": flow["from"]}
        for flow in values["flows"]
        if f"{flow['from']}-{flow['to']}" in flows
    ]
    return {**values, "flows": turned}


def tails(promoted: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> list[Tail]:
    return [
        Tail(partition=str(at), first=promoted.get(at, 0), records=end - promoted.get(at, 0))
        for at, end in sorted(ends.items())
        if end > promoted.get(at, 0)
    ]


def fail_back(mirror: Mirror, flow: Flow, path: Path, state_dir: Path, *, discard: bool) -> FailedBack:
    """Make the flow's source ready to be the standby of its target."""
    deployment, folder = connected(mirror, flow, path, state_dir), state_folder(mirror, flow, state_dir)
    if not flow.is_standby:
        raise NotFailedBack(f"{flow.name} has no `offsets: keep`: a flow in the other direction is all it takes")
    if folder.locked_by_another:
        raise NotFailedBack(
            f"the mirror runs: stop it first (`ottla pipeline stop {folder.pipeline}`, or Ctrl-C there)"
        )
    old_id, new_id = (cluster_id(deployment, name) for name in (flow.source, flow.target))
    old, new = (shared_cluster(client_settings(deployment.kafka(name))) for name in (flow.source, flow.target))
    if loop.run(takes_batches(old)) is TakesBatches.NOT_OTTLA:
        raise NotFailedBack(
            f"{flow.source} is not an Ottla cluster, so it cannot keep offsets: nothing was done. Bring the records "
            f"back by a flow from {flow.target} to {flow.source} without `offsets: keep`, into topics of other names"
        )
    group = group_of(mirror, flow)
    clusters = sorted(mirror.clusters)
    still = loop.run(mirrored_topics(new, lambda topic: naming.takes(flow, topic, clusters), old_id))
    if still.sources:
        raise NotFailedBack(f"{', '.join(still.sources)} in {flow.target} is still a mirror: promote it first")
    back = CopyTo(
        target=deployment.kafka(flow.source), source_id=new_id, positions=positions_group(group),
        replication_factor=flow.replication_factor, clear_on_loss=True,
        own_settings=flow.own_settings,
    )  # fmt: skip
    return loop.run(_fail_back(flow, old, new, promoted_group(group), Preparing(back, new, old), discard=discard))


async def _fail_back(
    flow: Flow, old: Cluster, new: Cluster, group: str, preparing: Preparing, *, discard: bool
) -> FailedBack:
    promoted = {at: found.offset for at, found in (await group_offsets(new, group)).items()}
    topics = sorted({at.topic for at in promoted})
    if not topics:
        raise NotFailedBack(f"no topic of {flow.name} has been promoted in {flow.target}")
    listed = {topic.name: topic for topic in await admin.list_topics(old) if topic.name in topics}
    there = [TopicPartition(name, number) for name, topic in listed.items() for number in topic.partitions]
    lost = tails(promoted, await resolving.latest(old, there, committed=False))
    if lost and not discard:
        shown = "; ".join(f"{tail.partition} from {tail.first} on: {tail.records}" for tail in lost)
        raise NotFailedBack(
            f"{flow.source} has {sum(tail.records for tail in lost)} offsets that {flow.target} never got ({shown}). "
            "Read what you need of them now; --discard deletes them"
        )
    wanted = {
        TopicPartition(topic.name, number): topic.topic_id
        for topic in await admin.list_topics(new)
        if topic.name in topics
        for number in topic.partitions
    }
    for name in listed:
        await preparing.clear(name)
    await preparing.prepare(wanted)
    return FailedBack(flow=flow.name, topics=topics, discarded=lost)
