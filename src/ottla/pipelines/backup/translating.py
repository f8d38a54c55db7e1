"""Groups, ACLs and quotas of a backup in the target: offsets by the exact map that the restore has noted."""

from collections.abc import Mapping, Sequence

from ottla.client.acls import create_acls
from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets
from ottla.client.quotas import alter_client_quotas
from ottla.client.settings import client_settings
from ottla.model.acls import AclBinding, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.errors import ApiError
from ottla.model.names import TopicPartition
from ottla.model.rights import Resource
from ottla.pipelines.backup.manifest import AclBackup, GroupOffset, QuotaBackup
from ottla.pipelines.backup.naming import map_topic
from ottla.pipelines.backup.restore_plan import PartitionRestore, RestorePlan
from ottla.pipelines.mirror.offset_map import OffsetMap, from_record
from ottla.spark import loop
from ottla.spark.connections import KAFKA_PREFIX, shared_cluster
from ottla.spark.reading import resolving
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.options import parse_read_options


def restore_groups(client: Mapping[str, str], plan: RestorePlan, reached: Mapping[TopicPartition, int]) -> list[str]:
    """Give each group the place of the first record that it had not read; what could not be done, in words.

    `reached` is where logs ended when their records were in.
    """
    partitions = {each.source: each for each in plan.partitions()}
    if not plan.groups or all(each.done for each in partitions.values()):
        return []
    known = _read_map(client, plan) if plan.needs_map else OffsetMap()
    cluster = shared_cluster(client_settings(client))
    problems = []
    for group in plan.groups:
        places = {
            partitions[at].target: (_place(each, partitions[at], known, reached), each.metadata)
            for each in group.offsets
            if (at := TopicPartition(each.topic, each.partition)) in partitions
        }
        offsets = {at: place for at, (place, _) in places.items()}
        metadata = {at: text for at, (_, text) in places.items()}
        try:
            refused = loop.run(commit_offsets(cluster, group.group, offsets, metadata=metadata))
        except ApiError as error:
            problems.append(f"group {group.group}: {error}. Is a consumer in it? Stop it and restore again")
            continue
        problems += [f"group {group.group} took no offset for {at}: {code.name}" for at, code in refused.items()]
    return problems


def _place(
    committed: GroupOffset, partition: PartitionRestore, known: OffsetMap, reached: Mapping[TopicPartition, int]
) -> int:
    if partition.same:
        return min(committed.offset, reached.get(partition.target, partition.end))
    place = known.translate(partition.source, committed.offset, whole=True)
    return 0 if place is None else place  # nothing was restored there


def _read_map(client: Mapping[str, str], plan: RestorePlan) -> OffsetMap:
    at = TopicPartition(map_topic(plan.name), 0)
    cluster = shared_cluster(client_settings(client))
    starts = loop.run(resolving.earliest(cluster, [at]))
    ends = loop.run(resolving.latest(cluster, [at], committed=True))
    asked = {f"{KAFKA_PREFIX}{name}": value for name, value in client.items()}
    options = parse_read_options({**asked, "subscribe": at.topic}, streaming=False)
    known = OffsetMap()
    for batch in read_range(OffsetRange(at, starts[at], ends[at]), options):
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        known.add(from_record(key, value) for key, value in zip(keys, values, strict=True) if key and value)
    return known


async def restore_acls(cluster: Cluster, acls: Sequence[AclBackup]) -> None:
    await create_acls(
        cluster,
        [
            AclBinding(
                ResourcePattern(Resource(rule.resource), rule.name, PatternType(rule.pattern)),
                AclEntry(rule.principal, rule.host, rule.operation, Permission(rule.permission)),
            )
            for rule in acls
        ],
    )


async def restore_quotas(cluster: Cluster, quotas: Sequence[QuotaBackup]) -> None:
    for quota in quotas:
        await alter_client_quotas(cluster, quota.entity, add=quota.quotas)
