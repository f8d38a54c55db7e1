"""What a cluster tells of itself for a backup: topics with their settings and ends, groups, ACLs, quotas, users."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.client import admin
from ottla.client.acls import describe_acls
from ottla.client.cluster import Cluster
from ottla.client.errors import UnsupportedByBroker
from ottla.client.groups import group_offsets, list_groups
from ottla.client.offsets import EARLIEST, LATEST, FoundOffset, list_offsets
from ottla.client.quotas import describe_client_quotas
from ottla.client.scram_users import describe_scram_users
from ottla.model.acls import AclFilter
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition, format_topic_id
from ottla.pipelines.backup.manifest import (
    SCRAM_NOTE,
    AclBackup,
    BackupProblem,
    GroupBackup,
    GroupOffset,
    QuotaBackup,
    ScramUser,
    TopicBackup,
)
from ottla.pipelines.backup.naming import INTERNAL, RESTORES
from ottla.pipelines.backup.planning import FoundPartition, FoundTopic, clamped

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NOT_TOLD = frozenset(
    {
        ErrorCode.SECURITY_DISABLED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REQUEST,
    }
)  # fmt: skip


class Rights(NamedTuple):
    acls: list[AclBackup] | None
    quotas: list[QuotaBackup] | None
    scram_users: list[ScramUser] | None
    notes: list[str]


async def find_topics(cluster: Cluster, wanted: re.Pattern[str]) -> list[FoundTopic]:
    names = [
        topic.name
        for topic in await admin.list_topics(cluster)
        if not topic.internal and wanted.fullmatch(topic.name) and not re.fullmatch(INTERNAL, topic.name)
    ]
    configs = await admin.topic_settings(cluster, names)
    described = await admin.describe_topics(cluster, names)
    places = [TopicPartition(topic.name, each.partition) for topic in described for each in topic.partitions]
    starts = await _offsets(cluster, places, EARLIEST)
    ends = await _offsets(cluster, places, LATEST)
    sizes = await _sizes(cluster, described)
    found = []
    for topic in described:
        partitions = []
        for each in sorted(topic.partitions, key=lambda partition: partition.partition):
            at = TopicPartition(topic.name, each.partition)
            end = ends[at].offset or 0
            partitions.append(FoundPartition(starts[at].offset or 0, end, ends[at].leader_epoch, sizes.get(at)))
        replicas = max((len(each.replicas) for each in topic.partitions), default=1)
        found.append(FoundTopic(topic.name, format_topic_id(topic.topic_id), replicas, configs[topic.name], partitions))
    return found


async def _offsets(cluster: Cluster, places: Sequence[TopicPartition], time: int) -> dict[TopicPartition, FoundOffset]:
    """Ends are last stable offsets: what lies behind belongs to transactions that nobody has decided."""
    if not places:
        return {}
    found: dict[TopicPartition, FoundOffset] = {}
    for at, answer in (await list_offsets(cluster, dict.fromkeys(places, time), committed=time == LATEST)).items():
        if not isinstance(answer, FoundOffset):
            raise BackupProblem(f"{at} did not say its offsets: {answer.name}. Try again when it has a leader")
        found[at] = answer
    return found


async def _sizes(cluster: Cluster, described: Sequence[admin.TopicDescription]) -> dict[TopicPartition, int]:
    """Bytes of the leaders' logs, for parts of equal work; nothing where the cluster does not tell."""
    leaders: dict[int, dict[str, list[int]]] = {}
    for topic in described:
        for each in topic.partitions:
            if each.leader is not None:
                leaders.setdefault(each.leader, {}).setdefault(topic.name, []).append(each.partition)
    found: dict[TopicPartition, int] = {}
    for node, partitions in leaders.items():
        try:
            for directory in await admin.describe_log_dirs(cluster, node, partitions):
                for topic_sizes in directory.topics:
                    for size in topic_sizes.partitions:
                        if not size.is_future_key:
                            found[TopicPartition(topic_sizes.name, size.partition_index)] = size.partition_size
        except (ApiError, UnsupportedByBroker):
            return {}
    return found


async def find_groups(cluster: Cluster, wanted: re.Pattern[str], topics: Sequence[TopicBackup]) -> list[GroupBackup]:
    """Taken last: what a group has read then is in the backup, or is clamped to its end."""
    found = []
    for listed in await list_groups(cluster):
        group = listed.group_id
        if group.startswith(RESTORES) or not wanted.fullmatch(group):
            continue
        try:
            offsets = await group_offsets(cluster, group, stable=True)
        except ApiError as error:
            if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            continue  # it is of a kind that commits no offsets, or has gone since
        committed = {
            at: GroupOffset(
                topic=at.topic, partition=at.partition, offset=offset.offset, leader_epoch=offset.leader_epoch,
                metadata=offset.metadata,
            )
            for at, offset in offsets.items()
        }  # fmt: skip
        kept = clamped(group, committed, topics)
        if kept is not None:
            found.append(kept)
    return found


async def find_rights(cluster: Cluster) -> Rights:
    """ACLs, quotas and SCRAM users, each where the cluster tells it; notes say what it did not."""
    notes: list[str] = []
    acls, quotas, users = None, None, None
    try:
        acls = [
            AclBackup(
                resource=int(pattern.resource), name=pattern.name, pattern=int(pattern.type),
                principal=entry.principal, host=entry.host, operation=int(entry.operation),
                permission=int(entry.permission),
            )
            for pattern, entry in await describe_acls(cluster, AclFilter())
        ]  # fmt: skip
    except (ApiError, UnsupportedByBroker) as error:
        notes.append(_not_told("ACLs", error))
    try:
        found = await describe_client_quotas(cluster, {}, strict=False)
        quotas = [QuotaBackup(entity=dict(each.names), quotas=dict(each.quotas)) for each in found]
    except (ApiError, UnsupportedByBroker) as error:
        notes.append(_not_told("quotas", error))
    try:
        users = [
            ScramUser(user=user, iterations={MECHANISMS.get(kind, str(kind)): count for kind, count in known.items()})
            for user, known in sorted((await describe_scram_users(cluster)).items())
        ]
    except (ApiError, UnsupportedByBroker) as error:
        notes.append(_not_told("SCRAM users", error))
    if users:
        notes.append(SCRAM_NOTE)
    return Rights(acls, quotas, users, notes)


def _not_told(what: str, error: ApiError | UnsupportedByBroker) -> str:
    if isinstance(error, ApiError) and error.code not in _NOT_TOLD:
        raise error
    reason = str(error) or (error.code.name if isinstance(error, ApiError) else "")
    return f"{what} are not in this backup: the cluster does not tell them ({reason})"


async def topic_ids(cluster: Cluster) -> Mapping[str, str]:
    return {topic.name: format_topic_id(topic.topic_id) for topic in await admin.list_topics(cluster)}
