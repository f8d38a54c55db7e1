"""What a log answers: where an append landed, which bytes a read may send."""

import os

import msgspec

from ottla.broker.storage.disk import SegmentFile


class AppendResult(msgspec.Struct, frozen=True, gc=False):
    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    record_count: int
    byte_count: int
    batch_count: int = 1


class LogSlice(msgspec.Struct, frozen=True, gc=False):
    """Bytes of one segment, to be sent as they are. Holding it keeps the file open, whatever becomes of the segment."""

    file: SegmentFile | None
    position: int
    length: int
    segment_base_offset: int

    @property
    def fd(self) -> int:
        return self.file.fd if self.file is not None else -1

    def read(self) -> bytes:
        return os.pread(self.file.fd, self.length, self.position) if self.file is not None else b""
