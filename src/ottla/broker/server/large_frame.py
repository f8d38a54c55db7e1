"""A request that one read does not bring: received straight into the buffer that is later written to the segment."""

from ottla.broker.server.limits import RequestMemory

START_BYTES = 64 * 1024


class LargeFrame:
    """The buffer's memory is touched when it is made, so it grows with what has come, not with what was announced."""

    __slots__ = ("_buffer", "_filled", "_memory", "_size")

    def __init__(self, size: int, first_part: memoryview, memory: RequestMemory) -> None:
        received = len(first_part)
        self._buffer = bytearray(min(size, max(START_BYTES, 4 * received)))
        self._buffer[:received] = first_part
        self._filled = received
        self._size = size
        self._memory = memory
        memory.take(received)

    @property
    def room(self) -> memoryview:
        """Where the next bytes go. Not to be kept: while it exists the buffer cannot grow."""
        return memoryview(self._buffer)[self._filled :]

    def add(self, received: int) -> bytearray | None:
        """So many bytes came into the room. The whole request, once it is there."""
        self._filled += received
        self._memory.take(received)
        if self._filled == self._size:
            self._memory.give_back(self._size)
            return self._buffer
        if self._filled == len(self._buffer):
            self._buffer.extend(bytes(min(len(self._buffer), self._size - len(self._buffer))))
        return None

    def give_up(self) -> None:
        """The rest will not come."""
        self._memory.give_back(self._filled)
