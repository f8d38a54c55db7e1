"""dump-log's view of a .log file: batches, and the records in them."""

import json
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ottla.cli.common.group_records_json import message_json
from ottla.cli.common.output import CommandError, complain
from ottla.cli.dump.decoders import Decode
from ottla.protocol.codec import decode as decode_message
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.messages.k_raft_version_record import KRaftVersionRecord
from ottla.protocol.messages.leader_change_message import LeaderChangeMessage
from ottla.protocol.messages.snapshot_footer_record import SnapshotFooterRecord
from ottla.protocol.messages.snapshot_header_record import SnapshotHeaderRecord
from ottla.protocol.messages.voters_record import VotersRecord
from ottla.protocol.records import (
    BATCH_OVERHEAD,
    HAS_DELETE_HORIZON,
    MAGIC_POSITION,
    BatchHeader,
    Codec,
    CorruptBatch,
    Record,
    check_crc,
    decode_batch,
    read_header,
)
from ottla.protocol.schema import TopLevel

NO_LIMIT = 2**31 - 1
INDENT = "|"
MAX_SEQUENCE = 2**31 - 1
_CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)


class SegmentOptions(NamedTuple):
    print_contents: bool
    deep: bool
    skip_record_metadata: bool
    max_bytes: int
    decode: Decode | None


@contextmanager
def mapped(path: str) -> Iterator[memoryview]:
    """The bytes of a file without reading them in; an empty file cannot be mapped."""
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            yield memoryview(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
            yield view


def base_offset_of(path: str) -> int:
    name = os.path.basename(path).partition(".")[0]
    if not name.isdecimal():
        raise CommandError(f"a segment's file is named after its first offset, and `{name}` is no number")
    return int(name)


def dump_segment(path: str, options: SegmentOptions) -> bool:
    print(f"Log starting offset: {base_offset_of(path)}")
    gaps: list[tuple[int, int]] = []
    with mapped(path) as whole:
        view = whole[: options.max_bytes]
        try:
            intact = _dump_batches(view, path, options, gaps)
        finally:
            view.release()
    if gaps:
        sys.stdout.flush()
        print(f"Non-consecutive offsets in {os.path.realpath(path)}", file=sys.stderr)
        for before, after in gaps:
            print(f"  {before} is followed by {after}", file=sys.stderr)
    return intact


def _dump_batches(view: memoryview, path: str, options: SegmentOptions, gaps: list[tuple[int, int]]) -> bool:
    position = 0
    last_offset = -1
    intact = True
    while position + BATCH_OVERHEAD <= len(view):
        try:
            header = read_header(view, position)
        except CorruptBatch as error:
            _explain(path, position, _old_format(view, position) or str(error))
            intact = False
            break
        if position + header.size > len(view):
            break
        valid = _is_valid(view, position, header)
        print(_batch_line(header, position, valid=valid, horizon=_delete_horizon(header)))
        if options.deep:
            try:
                last_offset = _dump_records(view, position, header, options, last_offset, gaps)
            except CorruptBatch as error:
                _explain(path, position, str(error))
                valid = False
        intact = intact and valid
        position += header.size
    trailing = len(view) - position
    if trailing > 0 and options.max_bytes == NO_LIMIT:
        print(f"Found {trailing} invalid bytes at the end of {os.path.basename(path)}")
    return intact


def _explain(path: str, position: int, reason: str) -> None:
    sys.stdout.flush()
    complain(f"{path}: the batch at position {position} cannot be read: {reason}")


def _old_format(view: memoryview, position: int) -> str | None:
    magic = view[position + MAGIC_POSITION]
    if magic in (0, 1):
        return f"it is in message format {magic}, which Kafka wrote before version 0.11; only format 2 is read"
    return None


def _is_valid(view: memoryview, position: int, header: BatchHeader) -> bool:
    try:
        check_crc(view, position, header)
    except CorruptBatch:
        return False
    return True


def _delete_horizon(header: BatchHeader) -> str:
    if header.attributes & HAS_DELETE_HORIZON:
        return f"OptionalLong[{header.base_timestamp}]"
    return "OptionalLong.empty"


def _timestamp_type(header: BatchHeader) -> str:
    return "LogAppendTime" if header.uses_log_append_time else "CreateTime"


def _codec_name(header: BatchHeader) -> str:
    try:
        return Codec(header.codec).name.lower()
    except ValueError:
        return f"unknown({header.codec})"


def _sequence(base: int, delta: int) -> int:
    """Sequence numbers start again at 0 after the largest."""
    if base < 0:
        return base
    sequence = base + delta
    return sequence if sequence <= MAX_SEQUENCE else sequence - MAX_SEQUENCE - 1


def _batch_line(header: BatchHeader, position: int, *, valid: bool, horizon: str) -> str:
    last_sequence = _sequence(header.base_sequence, header.last_offset_delta)
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.leader_epoch} isTransactional: {_word(header.is_transactional)} "
        f"isControl: {_word(header.is_control)} deleteHorizonMs: {horizon} position: {position} "
        f"{_timestamp_type(header)}: {header.max_timestamp} size: {header.size} magic: {header.magic} "
        f"compresscodec: {_codec_name(header)} crc: {header.crc} isvalid: {_word(valid)}"
    )


def _word(value: bool) -> str:
    return "true" if value else "false"


def _dump_records(
    view: memoryview,
    position: int,
    header: BatchHeader,
    options: SegmentOptions,
    last_offset: int,
    gaps: list[tuple[int, int]],
) -> int:
    for record in decode_batch(view, position):
        if record.offset != last_offset + 1:
            gaps.append((last_offset, record.offset))
        last_offset = record.offset
        line = "" if options.skip_record_metadata else _metadata(record, header)
        if options.print_contents and options.decode is not None and not header.is_control:
            line += _contents(record, options.decode, f"{INDENT} " if options.skip_record_metadata else " ")
        print(line)
    return last_offset


def _metadata(record: Record, header: BatchHeader) -> str:
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    sequence = _sequence(header.base_sequence, record.offset - header.base_offset)
    names = ",".join(name for name, _value in record.headers)
    line = (
        f"{INDENT} offset: {record.offset} {_timestamp_type(header)}: {record.timestamp} keySize: {key_size} "
        f"valueSize: {value_size} sequence: {sequence} headerKeys: [{names}]"
    )
    return line + _control(record) if header.is_control else line


def _contents(record: Record, decode: Decode, prefix: str) -> str:
    key, value = decode(record)
    text = ""
    if key is not None:
        text = f"{prefix}key: {key}"
        prefix = " "
    return text if value is None else f"{text}{prefix}payload: {value}"


def _control(record: Record) -> str:
    """What a control record says: the end of a transaction, or a record of Kafka's quorum."""
    value = record.value or b""
    try:
        _version, kind = struct.unpack_from(">hh", record.key or b"")
        name = _CONTROL_TYPES[kind] if 0 <= kind < len(_CONTROL_TYPES) else "UNKNOWN"
        if name in ("ABORT", "COMMIT"):
            _value_version, epoch = struct.unpack_from(">hi", value)
            return f" endTxnMarker: {name} coordinatorEpoch: {epoch}"
        if name not in _QUORUM_RECORDS:
            return f" controlType: {name}({kind})"
        label, message_class = _QUORUM_RECORDS[name]
        (version,) = struct.unpack_from(">h", value)
        message = decode_message(message_class, version, value)
    except (struct.error, MalformedMessage) as error:
        raise CorruptBatch(f"the control record at offset {record.offset} does not parse: {error}") from None
    return f" {label} {json.dumps(message_json(message, version), separators=(',', ':'))}"


_QUORUM_RECORDS: dict[str, tuple[str, type[TopLevel]]] = {
    "LEADER_CHANGE": ("LeaderChange:", LeaderChangeMessage),
    "SNAPSHOT_HEADER": ("SnapshotHeader", SnapshotHeaderRecord),
    "SNAPSHOT_FOOTER": ("SnapshotFooter", SnapshotFooterRecord),
    "KRAFT_VERSION": ("KRaftVersion", KRaftVersionRecord),
    "KRAFT_VOTERS": ("KRaftVoters", VotersRecord),
}
