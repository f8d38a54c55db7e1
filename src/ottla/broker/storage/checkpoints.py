"""The small text files of a log directory: offset checkpoints, leader epochs, partition.metadata, meta.properties.

Parsing is forgiving where the content can be had elsewhere (None means "unusable, rebuild it") and strict where
guessing would lose data.
"""

import itertools
import json
from collections.abc import Iterable, Mapping
from uuid import UUID

from ottla.model.errors import OttlaError
from ottla.model.names import NO_TOPIC_ID, TopicPartition, format_topic_id, parse_topic_id

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
MOVE_MARK = "move-under-way"
"""Lies in the directory of a partition that is a copy of another one, until that one is gone."""

_VERSION = "0"


def read_text(path: str) -> str | None:
    """The file's text, or None when there is no such file or it is not text."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    return ("\n".join(lines) + "\n").encode()


def parse_offsets(text: str | None) -> dict[TopicPartition, int] | None:
    rows = _rows(text, 3)
    if rows is None:
        return None
    try:
        return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}
    except ValueError:
        return None


def format_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    lines = [f"{epoch} {start}" for epoch, start in entries]
    return ("\n".join([_VERSION, str(len(lines)), *lines]) + "\n").encode()


def parse_epochs(text: str | None) -> list[tuple[int, int]] | None:
    """Entries (epoch, start offset) with both rising, or None when the file is missing or makes no sense."""
    rows = _rows(text, 2)
    if rows is None:
        return None
    try:
        entries = [(int(epoch), int(start)) for epoch, start in rows]
    except ValueError:
        return None
    rising = all(a[0] < b[0] and a[1] <= b[1] for a, b in itertools.pairwise(entries))
    return entries if rising and all(epoch >= 0 and start >= 0 for epoch, start in entries) else None


def _rows(text: str | None, columns: int) -> list[list[str]] | None:
    if text is None:
        return None
    lines = text.split("\n")
    if len(lines) < 2 or lines[0].strip() != _VERSION or not lines[1].strip().isdecimal():
        return None
    rows = [line.split() for line in lines[2:] if line.strip()]
    if len(rows) != int(lines[1]) or any(len(row) != columns for row in rows):
        return None
    return rows


def format_partition_metadata(topic_id: UUID) -> bytes:
    return f"version: 0\ntopic_id: {format_topic_id(topic_id)}".encode()


def parse_partition_metadata(text: str | None) -> UUID:
    """The topic id, or NO_TOPIC_ID when a power cut emptied the file (whoever knows the topic writes it again)."""
    for line in (text or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            try:
                return parse_topic_id(value.strip())
            except ValueError:
                return NO_TOPIC_ID
    return NO_TOPIC_ID


def format_properties(properties: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in properties.items()).encode()


def parse_properties(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def check_meta_properties(properties: Mapping[str, str], cluster_id: str | None, node_id: int, path: str) -> None:
    """Refuse a directory that belongs to another broker: serving it would mix two brokers' data."""
    if properties.get("version") not in ("0", "1"):
        raise OttlaError(f"{path}: version {properties.get('version')!r} is not known")
    theirs = properties.get("cluster.id")
    if cluster_id is not None and theirs is not None and theirs != cluster_id:
        raise OttlaError(f"{path} belongs to cluster {theirs}, this broker to {cluster_id}; use another log.dirs")
    owner = properties.get("node.id", properties.get("broker.id"))
    if owner is not None and owner != str(node_id):
        raise OttlaError(f"{path} belongs to node {owner}, this broker is node {node_id}; use another log.dirs")


def format_clean_shutdown(broker_epoch: int = -1) -> bytes:
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()
