"""What a backup consists of, written down with checksums. Pure.

A manifest names every object that its backup needs: those of its own run, and those of earlier runs that still count.
So an increment is as whole as a full backup, and nothing is broken when another manifest goes. It is two lines: the
first has the checksum of the second, which a manifest that was cut short does not match.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from ottla.model.names import TopicPartition
from ottla.pipelines.errors import PipelineError

FORMAT = 1
Kind = Literal["parquet", "raw"]

SCRAM_NOTE = (
    "SCRAM users are listed by name, mechanism and iterations only: brokers tell nobody their salted passwords, so a "
    "restore cannot bring them back. `ottla backup metadata` copies the metadata store, which has them"
)


class BackupProblem(PipelineError):
    """A backup cannot be taken or restored as asked; the message says what to do."""


class DamagedBackup(BackupProblem):
    """What is stored is not what was written."""


class MissingObject(DamagedBackup):
    """It is not there."""


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one partition, in their order. It answers for the offsets from `start` up to `end`."""

    path: str
    kind: Kind
    sha256: str
    bytes: int
    records: int
    """That a reader of committed records sees from `start` on."""
    start: int
    end: int
    first: int
    """The offset of the first record or, in raw batches, of the first batch; -1 without any."""
    last: int
    content: str | None = None
    """Parquet: a hash over offsets, keys, values, headers and timestamps, whatever the file is made like."""
    max_timestamp: int = -1
    batch_bytes_max: int = 0
    """The largest batch or, in Parquet, record: what the target's max.message.bytes has to let through."""
    aborted: list[tuple[int, int]] = []
    """Raw: producer id and first offset of the aborted transactions among its batches."""


class PartitionBackup(msgspec.Struct, frozen=True, kw_only=True):
    partition: int
    log_start: int
    end: int
    """The last stable offset when the backup began: what it reaches up to."""
    leader_epoch: int = -1
    objects: list[StoredObject] = []
    lost: list[tuple[int, int]] = []
    """Offsets that retention deleted before they were read."""
    sha256: str = ""
    """Over its objects: offsets, counts and checksums."""

    @property
    def records(self) -> int:
        return sum(stored.records for stored in self.objects)

    @property
    def is_dense(self) -> bool:
        """Every offset from 0 on is a record: a new partition gives them the same offsets."""
        return self.log_start == 0 and self.records == self.end


class TopicBackup(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    topic_id: str
    replication_factor: int
    configs: dict[str, str]
    """What was set for the topic itself; defaults are each cluster's own."""
    partitions: list[PartitionBackup]


class GroupOffset(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class GroupBackup(msgspec.Struct, frozen=True, kw_only=True):
    group: str
    offsets: list[GroupOffset]


class AclBackup(msgspec.Struct, frozen=True, kw_only=True):
    """By Kafka's numbers, as they are on the wire."""

    resource: int
    name: str
    pattern: int
    principal: str
    host: str
    operation: int
    permission: int


class QuotaBackup(msgspec.Struct, frozen=True, kw_only=True):
    entity: dict[str, str | None]
    quotas: dict[str, float]


class ScramUser(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    iterations: dict[str, int]
    """By mechanism."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    parent: str | None
    """The backup that this one went on from."""
    kind: Kind
    cluster_id: str
    selection: str
    begun_ms: int
    taken_ms: int
    """When the offsets of groups were taken, the last of all."""
    topics: list[TopicBackup]
    groups: list[GroupBackup]
    acls: list[AclBackup] | None = None
    """None where the cluster does not tell them; the notes say why."""
    quotas: list[QuotaBackup] | None = None
    scram_users: list[ScramUser] | None = None
    notes: list[str] = []
    version: str = ""
    """Of the program that wrote it."""

    def objects(self) -> Iterable[tuple[TopicPartition, StoredObject]]:
        for topic in self.topics:
            for partition in topic.partitions:
                for stored in partition.objects:
                    yield TopicPartition(topic.name, partition.partition), stored

    @property
    def records(self) -> int:
        return sum(stored.records for _, stored in self.objects())

    @property
    def bytes(self) -> int:
        return sum(stored.bytes for _, stored in self.objects())

    def topic(self, name: str) -> TopicBackup | None:
        return next((topic for topic in self.topics if topic.name == name), None)


class _Seal(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    sha256: str
    bytes: int


def encode_manifest(manifest: Manifest) -> bytes:
    body = msgspec.json.encode(manifest)
    seal = _Seal(format=FORMAT, sha256=hashlib.sha256(body).hexdigest(), bytes=len(body))
    return msgspec.json.encode(seal) + b"\n" + body + b"\n"


def decode_manifest(content: bytes, where: str) -> Manifest:
    head, newline, rest = content.partition(b"\n")
    try:
        seal = msgspec.json.decode(head, type=_Seal)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedBackup(f"{where} is not a manifest, or is damaged: {error}") from None
    if seal.format != FORMAT:
        raise DamagedBackup(f"{where} has format {seal.format}; this version reads format {FORMAT}")
    body = rest.removesuffix(b"\n")
    if not newline or len(body) != seal.bytes:
        raise DamagedBackup(f"{where} is cut short: {len(body)} of {seal.bytes} bytes are there")
    if hashlib.sha256(body).hexdigest() != seal.sha256:
        raise DamagedBackup(f"{where} fails its checksum: it was changed after it was written")
    try:
        return msgspec.json.decode(body, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedBackup(f"{where} does not read as a manifest: {error}") from None


def partition_sum(objects: Sequence[StoredObject]) -> str:
    """One checksum for a partition: the order, the places and the content of its objects are in it."""
    lines = [f"{each.start} {each.end} {each.records} {each.sha256} {each.content or '-'}\n" for each in objects]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def wrong_partition(name: str, partition: PartitionBackup) -> list[str]:
    """What contradicts itself in a manifest: objects that overlap, counts and sums that are not theirs."""
    at = f"{name}-{partition.partition}"
    found = []
    for before, after in zip(partition.objects, partition.objects[1:], strict=False):
        if after.start < before.end:
            found.append(f"{at}: {after.path} begins at {after.start}, before {before.path} ends at {before.end}")
    found += [
        f"{at}: {stored.path} covers {stored.start} to {stored.end}, which is no part of the backup"
        for stored in partition.objects
        if not stored.start < stored.end <= partition.end
    ]
    if partition_sum(partition.objects) != partition.sha256:
        found.append(f"{at}: the checksum of the partition does not fit its objects")
    missing = _uncovered(partition)
    if missing:
        found.append(f"{at}: no object answers for the offsets {missing[0][0]} to {missing[0][1] - 1}")
    return found


def _uncovered(partition: PartitionBackup) -> list[tuple[int, int]]:
    """Offsets that neither an object has nor retention took; ranges without any record have an object all the same."""
    known = sorted([(stored.start, stored.end) for stored in partition.objects] + [*partition.lost])
    reached, missing = partition.log_start, []
    for start, end in known:
        if start > reached:
            missing.append((reached, start))
        reached = max(reached, end)
    if reached < partition.end:
        missing.append((reached, partition.end))
    return missing
