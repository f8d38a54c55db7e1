"""Topics of the target as a flow needs them: made, widened, their settings kept in step. `deciding` decides."""

import contextlib
from collections.abc import Mapping

from ottla.client import admin
from ottla.client.acls import create_acls, describe_acls
from ottla.client.admin import BROKER_DEFAULT, ResourceType, topic_settings
from ottla.client.admin import Resource as ConfigResource
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.model.acls import AclFilter
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.model.rights import Resource
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.deciding import acl_work, left_out, settings_work, topic_work
from ottla.pipelines.mirror.spec import Flow
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.copying.words import SETTING as MIRROR_SOURCE

COMPACT = {"cleanup.policy": "compact"}


def ensure_topics(
    source: Mapping[str, str], target: Mapping[str, str], flow: Flow, wanted: Mapping[TopicPartition, TopicPartition]
) -> None:
    """Before a batch is written: all its partitions are there, and the topic that notes where records went.

    `wanted` are partitions of the target, with those of the source that they are copies of.
    """
    original, copy = (shared_cluster(client_settings(each)) for each in (source, target))
    loop.run(_ensure(original, copy, flow, wanted))


async def _ensure(
    source: Cluster, cluster: Cluster, flow: Flow, wanted: Mapping[TopicPartition, TopicPartition]
) -> None:
    listed = {topic.name: len(topic.partitions) for topic in await admin.list_topics(cluster)}
    work = topic_work(wanted, listed)
    originals = {here.topic: there.topic for here, there in wanted.items() if here.topic in work.make}
    settings: Mapping[str, Mapping[str, str]] = {}
    if flow.settings:
        with contextlib.suppress(ApiError):  # no right to read them, or a topic that is gone: `keep_settings` says so
            settings = await topic_settings(source, set(originals.values()))
    for topic, partitions in work.make.items():
        await _make_copy(cluster, flow, topic, partitions, settings.get(originals[topic], {}))
    for topic, partitions in work.widen.items():
        await admin.create_partitions(cluster, topic, partitions)
    if naming.map_topic(flow) not in listed:
        await make_topic(cluster, flow, naming.map_topic(flow), 1, COMPACT)


async def make_topic(
    cluster: Cluster, flow: Flow, topic: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    replicas = flow.replication_factor or BROKER_DEFAULT
    try:
        await admin.create_topic(cluster, topic, partitions=partitions, replication_factor=replicas, configs=configs)
    except ApiError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # somebody was quicker
            raise


async def _make_copy(cluster: Cluster, flow: Flow, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
    """With the settings of the original from the first moment on: by the target's own retention, or cleaner, records
    could go that the source still has."""
    try:
        await make_topic(cluster, flow, topic, partitions, settings_work(settings, {}, _kept(flow)).set)
    except ApiError as error:
        if error.code != ErrorCode.INVALID_CONFIG:
            raise
        await make_topic(cluster, flow, topic, partitions)  # the target knows not all of them: `keep_settings` says so


async def ensure_compacted(cluster: Cluster, flow: Flow, topic: str) -> None:
    listed = {found.name for found in await admin.list_topics(cluster)}
    if topic not in listed:
        await make_topic(cluster, flow, topic, 1, COMPACT)


async def mirrored_pairs(source: Cluster, target: Cluster, flow: Flow, clusters: list[str]) -> dict[str, str]:
    """The topics of the source that are in the target, and what they are called there."""
    there = {topic.name for topic in await admin.list_topics(target)}
    pairs = {
        topic.name: naming.remote_name(flow, topic.name, clusters)
        for topic in await admin.list_topics(source)
        if not topic.internal and naming.takes(flow, topic.name, clusters)
    }
    return {here: remote for here, remote in pairs.items() if remote in there}


async def keep_acls(source: Cluster, target: Cluster, flow: Flow, clusters: list[str]) -> list[str]:
    """Copy what rules there are for mirrored topics; what was added or left out, in words."""
    everything = AclFilter(resource=Resource.TOPIC)
    try:
        rules = await describe_acls(source, everything)
        there = await describe_acls(target, everything)
    except ApiError as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return []
        raise
    pairs = await mirrored_pairs(source, target, flow, clusters)
    work = acl_work(rules, there, pairs, may_write=flow.is_standby)
    if work.create:
        await create_acls(target, work.create)
    return [
        *(f"rule added: {binding}" for binding in work.create),
        *(f"rule that stays behind: {binding}" for binding in work.left_out),
    ]


async def keep_settings(source: Cluster, target: Cluster, flow: Flow, clusters: list[str]) -> list[str]:
    """Bring the settings of all mirrored topics in step; what was changed or left out, in words."""
    pairs = await mirrored_pairs(source, target, flow, clusters)
    ours, theirs = await topic_settings(source, pairs), await topic_settings(target, pairs.values())
    said = []
    kept = _kept(flow)
    for here, remote in pairs.items():
        work = settings_work(ours[here], theirs[remote], kept)
        if work:
            await admin.alter_configs(
                target, ConfigResource(ResourceType.TOPIC, remote), add=work.set, delete=[*work.reset]
            )
            changed = [
                *(f"{name}={value}" for name, value in work.set.items()),
                *(f"{name} reset" for name in work.reset),
            ]
            said.append(f"settings of {remote}: {', '.join(changed)}")
        if excluded := left_out(ours[here], flow.exclude_settings):
            said.append(f"settings of {here} that stay behind: {', '.join(excluded)}")
    return said


def _kept(flow: Flow) -> set[str]:
    """Settings that are the target's own."""
    return {*flow.exclude_settings, MIRROR_SOURCE}
