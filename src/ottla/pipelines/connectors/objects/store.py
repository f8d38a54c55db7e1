"""Folders on disk and buckets behind the S3 API, seen alike: objects with a path, a size and a time.

Every Spark worker opens the store itself, so what is needed for that travels to it.
"""

import fnmatch
import functools
import os
from datetime import UTC, datetime
from typing import Any

import msgspec
from pyarrow import fs

from ottla.pipelines.connectors.options import Secret
from ottla.pipelines.errors import ConnectorProblem, FatalFailure, PipelineError

CONNECT_TIMEOUT_S = 5
REQUEST_TIMEOUT_S = 60
ATTEMPTS = 3


class S3Access(msgspec.Struct, frozen=True, kw_only=True):
    endpoint: str | None = None
    region: str | None = None
    access_key: str | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    virtual_hosts: bool = False

    def __repr__(self) -> str:
        return f"S3Access({self.endpoint})"


class Store(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    """A folder or a single file, or `bucket/prefix`."""
    pattern: str = "*"
    """Names, without folders, that count."""
    s3: S3Access | None = None


class StoredObject(msgspec.Struct, frozen=True):
    path: str
    size: int
    modified_us: int

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(self.modified_us / 1e6, UTC)


@functools.lru_cache(maxsize=16)
def file_system(access: S3Access | None) -> fs.FileSystem:
    """Kept for the life of a process: opening one costs a few milliseconds, and a connection."""
    if access is None:
        return fs.LocalFileSystem()
    given: dict[str, Any] = {
        "access_key": access.access_key,
        "secret_key": access.secret_key,
        "session_token": access.session_token,
        "region": access.region,
        "allow_delayed_open": True,  # a small object goes up in one request instead of three
    }
    if access.endpoint:
        scheme, _, place = access.endpoint.rpartition("://")
        given |= {"endpoint_override": place, "scheme": scheme or "https"}
        given["region"] = access.region or "us-east-1"
    return fs.S3FileSystem(
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=REQUEST_TIMEOUT_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
        force_virtual_addressing=access.virtual_hosts,
        background_writes=False,
        **{name: value for name, value in given.items() if value is not None},
    )


def listed(store: Store) -> list[StoredObject]:
    """What there is now, oldest first. Names that begin with `_` or `.`, of folders too, are not data."""
    system = file_system(store.s3)
    try:
        top = system.get_file_info(store.root)
        if top.type == fs.FileType.File:
            return [_found(top)]
        if top.type == fs.FileType.NotFound:
            if store.s3 is not None:
                _require_bucket(store)
            return []
        infos = system.get_file_info(fs.FileSelector(store.root, recursive=True, allow_not_found=True))
    except OSError as error:
        raise explain(error, store) from error
    counted = [info for info in infos if info.type == fs.FileType.File and _is_data(info.path, store)]
    return sorted(map(_found, counted), key=lambda found: (found.modified_us, found.path))


def _require_bucket(store: Store) -> None:
    bucket = store.root.split("/", 1)[0]
    if file_system(store.s3).get_file_info(bucket).type == fs.FileType.NotFound:
        raise FatalFailure(f"there is no bucket {bucket}: create it, or check its name and the endpoint")


def _found(info: fs.FileInfo) -> StoredObject:
    return StoredObject(info.path, int(info.size or 0), int(info.mtime_ns or 0) // 1000)


def _is_data(path: str, store: Store) -> bool:
    parts = path[len(store.root) :].lstrip("/").split("/")
    if any(part.startswith(("_", ".")) for part in parts):
        return False
    return fnmatch.fnmatch(os.path.basename(path), store.pattern)


def explain(error: OSError, store: Store) -> PipelineError:
    said = " ".join(str(error).split())
    if store.s3 is None:
        return ConnectorProblem(said)
    where = f"s3://{store.root}"
    if any(word in said for word in ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "HTTP 403")):
        return FatalFailure(
            f"{where}: access denied. Check `access_key`, `secret_key` and the bucket's policy ({said})"
        )
    if "NO_SUCH_BUCKET" in said or "NoSuchBucket" in said:
        return FatalFailure(f"{where}: there is no such bucket: create it, or check its name and the endpoint")
    if "NETWORK_CONNECTION" in said or "Could not connect" in said or "timed out" in said.lower():
        return ConnectorProblem(f"{where}: the endpoint cannot be reached. Is `endpoint` right? ({said})")
    return ConnectorProblem(f"{where}: {said}")
