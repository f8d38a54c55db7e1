"""Records of MirrorMaker 2's own topics, byte for byte, so that its tools (RemoteClusterUtils) read ours. Pure."""

import struct
from typing import NamedTuple

VERSION = 0

_SHORT, _INT, _LONG = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _SHORT.pack(len(encoded)) + encoded


class Heartbeat(NamedTuple):
    source: str
    target: str
    timestamp_ms: int

    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        return _SHORT.pack(VERSION) + _LONG.pack(self.timestamp_ms)


class Checkpoint(NamedTuple):
    """Where a group of the source would go on in the target."""

    group: str
    topic: str
    """By its name in the target."""
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        return _text(self.group) + _text(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        return _SHORT.pack(VERSION) + _LONG.pack(self.upstream) + _LONG.pack(self.downstream) + _text(self.metadata)


class OffsetSync(NamedTuple):
    """One record's place at both ends."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def key(self) -> bytes:
        return _text(self.topic) + _INT.pack(self.partition)

    def value(self) -> bytes:
        return _LONG.pack(self.upstream) + _LONG.pack(self.downstream)
