"""Where things are in a backup's place, and what they are called in a cluster. Pure.

manifests/<backup>.json              a backup that is complete; written last
runs/<backup>/plan.json              a run that has begun, and what it is to read
runs/<backup>/task-<number>.json     a part of it that is done
data/<backup>/<topic>/<partition>/   the objects that it wrote, by their first offset
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from ottla.model.names import TopicPartition
from ottla.pipelines.backup.manifest import Kind

MANIFESTS, RUNS, DATA = "manifests", "runs", "data"
SUFFIXES: Mapping[Kind, str] = {"parquet": "parquet", "raw": "batches"}
INTERNAL = r"ottla-restore-map\..*\.internal"
"""Topics of a restore that is under way: never backed up."""
RESTORES = "ottla.restore."

_ID = re.compile(r"\d{8}T\d{6}\.\d{3}Z")


def backup_id(now_ms: int) -> str:
    """Sorts as time does."""
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{now_ms % 1000:03d}Z"


def is_backup_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def manifest_path(backup: str) -> str:
    return f"{MANIFESTS}/{backup}.json"


def backup_of_manifest(path: str) -> str | None:
    """None for what is no manifest."""
    name = path.removeprefix(f"{MANIFESTS}/").removesuffix(".json")
    return name if path == manifest_path(name) and is_backup_id(name) else None


def run_folder(backup: str) -> str:
    return f"{RUNS}/{backup}"


def plan_path(backup: str) -> str:
    return f"{RUNS}/{backup}/plan.json"


def task_path(backup: str, number: int) -> str:
    return f"{RUNS}/{backup}/task-{number:06d}.json"


def backup_of_path(path: str) -> str | None:
    """The run that an object or a note belongs to."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] in (RUNS, DATA) and is_backup_id(parts[1]) else None


def object_path(backup: str, at: TopicPartition, start: int, attempt: str, kind: Kind) -> str:
    """`attempt` is another one for each try, so that a try never writes over what another has noted."""
    return f"{DATA}/{backup}/{at.topic}/{at.partition}/{start:020d}-{attempt}.{SUFFIXES[kind]}"


def restore_name(backup: str, request: str) -> str:
    """The same for the same command: by it a restore that was killed finds what it has done."""
    return f"{backup}-{hashlib.sha256(request.encode()).hexdigest()[:8]}"


def map_topic(restore: str) -> str:
    """In the target, while a restore runs: where each record went."""
    return f"ottla-restore-map.{restore}.internal"


def restore_group(restore: str, target: TopicPartition) -> str:
    """Also the transactional id of the partition's restore; its offset is the next one of the backup."""
    return f"{RESTORES}{restore}.{target}"
