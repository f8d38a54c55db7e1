"""Many nodes in one request (ZooKeeper 3.6 and newer), which kazoo does not know by itself.

With one request for each node a broker would load 200,000 partitions in minutes instead of seconds.
"""

import struct
from collections.abc import Sequence
from typing import Any

from kazoo.exceptions import EXCEPTIONS
from kazoo.protocol.serialization import GetData, read_buffer
from kazoo.protocol.states import ZnodeStat

_HEADER = struct.Struct("!iBi")
_END = _HEADER.pack(-1, True, -1)
_ERROR = struct.Struct("!i")
_STAT = struct.Struct("!qqqqiiiqiiq")
_ERROR_RESULT = -1


class MultiRead:
    """A request as kazoo's connection sends it; the answer is a list of (data, stat), or exceptions."""

    type = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def serialize(self) -> bytes:
        head = _HEADER.pack(GetData.type, False, -1)
        return b"".join(head + bytes(GetData(path, None).serialize()) for path in self._paths) + _END

    def deserialize(self, data: bytes, offset: int) -> list[Any]:
        found: list[Any] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            if done:
                return found
            if kind == _ERROR_RESULT:
                (code,) = _ERROR.unpack_from(data, offset)
                offset += _ERROR.size
                found.append(EXCEPTIONS[code]())
            else:
                content, offset = read_buffer(data, offset)
                found.append((content, ZnodeStat._make(_STAT.unpack_from(data, offset))))
                offset += _STAT.size

    def __repr__(self) -> str:
        return f"MultiRead({len(self._paths)} nodes)"
