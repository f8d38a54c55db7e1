"""A cluster's metadata as one file, with a checksum: what the store holds, whichever store that is. Pure.

The first line is a JSON object with the checksum of the rest; every other line is one document, sorted by path.
"""

import base64
import hashlib
from collections.abc import Mapping

import msgspec

from ottla.cluster.documents import CLUSTER_ID_PATH, read_cluster_id
from ottla.model.errors import OttlaError

FORMAT = "ottla-metadata"
VERSION = 1


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    cluster_id: str
    documents: int
    sha256: str


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    path: str
    text: str | None = None
    base64: str | None = None
    """What is no text."""


class DamagedMetadata(OttlaError):
    """The file is not one of these, or not what was written."""


def encode_metadata(documents: Mapping[str, bytes]) -> bytes:
    lines = b"".join(msgspec.json.encode(_line(path, data)) + b"\n" for path, data in sorted(documents.items()))
    head = _Head(
        format=FORMAT, version=VERSION, cluster_id=cluster_of(documents), documents=len(documents),
        sha256=hashlib.sha256(lines).hexdigest(),
    )  # fmt: skip
    return msgspec.json.encode(head) + b"\n" + lines


def decode_metadata(content: bytes, where: str) -> dict[str, bytes]:
    first, _, lines = content.partition(b"\n")
    try:
        head = msgspec.json.decode(first, type=_Head)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedMetadata(f"{where} is no copy of a cluster's metadata: {error}") from None
    if head.format != FORMAT or head.version != VERSION:
        raise DamagedMetadata(f"{where} has format {head.format} {head.version}; this version reads {FORMAT} {VERSION}")
    if hashlib.sha256(lines).hexdigest() != head.sha256:
        raise DamagedMetadata(f"{where} fails its checksum: it was cut short, or changed after it was written")
    found = [msgspec.json.decode(line, type=_Line) for line in lines.splitlines()]
    return {line.path: _data(line) for line in found}


def cluster_of(documents: Mapping[str, bytes]) -> str:
    if CLUSTER_ID_PATH not in documents:
        raise OttlaError("there is no cluster here: the store has no cluster id")
    return read_cluster_id(documents[CLUSTER_ID_PATH])


def _line(path: str, data: bytes) -> _Line:
    try:
        return _Line(path=path, text=data.decode())
    except UnicodeDecodeError:
        return _Line(path=path, base64=base64.b64encode(data).decode())


def _data(line: _Line) -> bytes:
    return base64.b64decode(line.base64) if line.base64 is not None else (line.text or "").encode()
