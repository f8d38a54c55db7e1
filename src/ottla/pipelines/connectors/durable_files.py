"""Small writes that survive a crash at any moment: the old content or the new, never a part of it."""

import hashlib
import os
import re
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def replace_file(path: Path, content: bytes) -> None:
    """Write beside it, flush, then take the place of the old file in one step."""
    beside = path.with_name(f"{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.rename(path)
    flush_folder(path.parent)


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


flush_folder = flush  # a rename is durable once its folder is


def read_note(path: Path, kind: type[T]) -> T | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=kind)


def writer_id(query: str, sink: str) -> str:
    """Short, and another for every query and sink: their files can share a folder."""
    return hashlib.sha256(f"{query}\n{sink}".encode()).hexdigest()[:10]


def safe_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)
