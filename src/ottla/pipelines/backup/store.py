"""The place of backups, a folder or a bucket: whole objects in and out. An object is there entirely or not at all."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from pyarrow import fs

from ottla.pipelines.backup.manifest import BackupProblem, MissingObject
from ottla.pipelines.connectors.durable_files import flush_folder
from ottla.pipelines.connectors.objects.store import S3Access, Store, explain, file_system

UNFINISHED = ".part"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Travels to tasks, which open it themselves."""

    root: str
    s3: S3Access | None = None

    def __str__(self) -> str:
        return self.root if self.s3 is None else f"s3://{self.root}"


class Stored(NamedTuple):
    path: str
    bytes: int


def place_of(text: str, access: S3Access | None = None) -> Place:
    """A folder, or `s3://bucket/prefix`."""
    parts = urlsplit(text)
    if parts.scheme == "s3":
        if not parts.netloc:
            raise BackupProblem(f"`{text}` names no bucket: write s3://bucket/prefix")
        return Place(root=f"{parts.netloc}{parts.path}".rstrip("/"), s3=access or S3Access())
    if len(parts.scheme) > 1 and parts.scheme != "file":
        raise BackupProblem(f"`{parts.scheme}:` is not served: name a folder, or s3://bucket/prefix")
    return Place(root=str(Path(parts.path if parts.scheme == "file" else text).expanduser().absolute()))


def read(place: Place, path: str) -> bytes:
    try:
        # As a file, whose size is asked for, it comes in one request; a stream would ask for every 256 KB anew.
        with file_system(place.s3).open_input_file(f"{place.root}/{path}") as file:
            return file.read()
    except FileNotFoundError:
        raise MissingObject(f"{place}/{path} is missing") from None
    except OSError as error:
        raise _explained(error, place) from error


def write(place: Place, path: str, content: bytes | memoryview) -> None:
    """All of it, durably, under its name in one step."""
    try:
        if place.s3 is None:
            _write_file(Path(place.root) / path, content)
            return
        with file_system(place.s3).open_output_stream(f"{place.root}/{path}", compression=None) as stream:
            stream.write(content)
    except OSError as error:
        raise _explained(error, place) from error


def _write_file(target: Path, content: bytes | memoryview) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}{UNFINISHED}")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(target)
    flush_folder(target.parent)


def listed(place: Place, under: str = "") -> list[Stored]:
    """By path; nothing where there is no such folder. Files that a kill cut short are left out."""
    root = f"{place.root}/{under}".rstrip("/")
    try:
        infos = file_system(place.s3).get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    except OSError as error:
        raise _explained(error, place) from error
    found = [
        Stored(info.path[len(place.root) :].lstrip("/"), int(info.size or 0))
        for info in infos
        if info.type == fs.FileType.File and not info.path.endswith(UNFINISHED)
    ]
    return sorted(found)


def delete(place: Place, path: str) -> None:
    """What is not there need not be deleted."""
    system = file_system(place.s3)
    try:
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(f"{place.root}/{path}")
    except OSError as error:
        raise _explained(error, place) from error
    if place.s3 is None:
        _delete_empty_folders(Path(place.root), Path(place.root, path).parent)


def _delete_empty_folders(root: Path, folder: Path) -> None:
    while folder != root and folder.is_relative_to(root):
        for left in folder.glob(f".*{UNFINISHED}"):
            left.unlink(missing_ok=True)
        try:
            folder.rmdir()
        except OSError:
            return  # something else is in it
        folder = folder.parent


@contextlib.contextmanager
def alone(place: Place) -> Iterator[None]:
    """One run at a time in a folder. A bucket has no locks: there it is on whoever starts runs."""
    if place.s3 is not None:
        yield
        return
    root = Path(place.root)
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupProblem(f"another run is at work in {place}: wait for it, or stop it") from None
        yield
    finally:
        os.close(descriptor)


def _explained(error: OSError, place: Place) -> Exception:
    return explain(error, Store(root=place.root, s3=place.s3))
