"""What a backup's file says, and what is wrong with it."""

from pathlib import Path
from typing import Literal

import msgspec

from ottla.pipelines.backup.manifest import Kind
from ottla.pipelines.cluster_lint import client_problems
from ottla.pipelines.connectors.objects.store import S3Access
from ottla.pipelines.durations import seconds_of
from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.loading import load
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.structs import Problem, read_struct

SUFFIXES = (".yaml", ".yml")


class S3Entry(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: str | None = None
    session_token: str | None = None
    virtual_hosts: bool = False


class BackupFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    to: str
    """A folder, or `s3://bucket/prefix`."""
    bootstrap: str | None = None
    client: dict[str, str] = {}
    s3: S3Entry = S3Entry()
    topics: str = ".*"
    groups: str = ".*"
    format: Literal["parquet", "raw"] = "parquet"
    every: str = "1 minute"
    """Between the increments of `--continuous`."""
    keep: int | None = None
    """So many backups stay; older ones are pruned after each run."""

    @property
    def kind(self) -> Kind:
        return self.format


def load_backup(path: Path) -> BackupFile:
    """With its secrets filled in. InvalidPipeline lists all that is wrong."""
    document = load(path)
    found, problems = read_struct(document.values, BackupFile, "", "a backup")
    if found is not None:
        problems += _wrong(found)
    if found is None or problems:
        raise InvalidPipeline(
            str(path), [f"{document.where(place)}: {text}" if place else text for place, text in problems]
        )
    filled = Secrets(path.resolve().parent).fill_in(msgspec.to_builtins(found))
    return msgspec.convert(filled, BackupFile)


def _wrong(found: BackupFile) -> list[Problem]:
    problems = [*client_problems(found.client, "client")]
    try:
        seconds_of(found.every)
    except ValueError as error:
        problems.append(("every", str(error)))
    if found.keep is not None and found.keep < 1:
        problems.append(("keep", "wants at least 1"))
    if (found.s3.access_key is None) != (found.s3.secret_key is None):
        problems.append(("s3.access_key", "goes together with `secret_key`; give both or none"))
    return problems


def access_of(entry: S3Entry) -> S3Access:
    return S3Access(
        endpoint=entry.endpoint, region=entry.region, access_key=entry.access_key, secret_key=entry.secret_key,
        session_token=entry.session_token, virtual_hosts=entry.virtual_hosts,
    )  # fmt: skip
