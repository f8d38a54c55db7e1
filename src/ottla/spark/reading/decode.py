"""Fetched record batches to Arrow: the columns of Spark's Kafka connector, for a range of offsets of one partition."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from ottla.protocol.aborted import AbortedWalk
from ottla.protocol.compression import Buffer, Codec, decompress
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, BatchHeader, check_crc, iterate_batches
from ottla.spark.kernel.arrow import Column, binary_column, buffer, column, constant_text, int32_column
from ottla.spark.kernel.choice import chosen_kernel
from ottla.spark.kernel.interface import REASONS, ChunkCapacity, Columns, Cursor, Kernel, Status, cursor
from ottla.spark.kernel.json_columns import JsonField, arrow_type, read_objects
from ottla.spark.plain_json import PLAIN

HEADER_TYPE = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", HEADER_TYPE))

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("key", pa.binary()),
    ("value", pa.binary()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
    ("timestamp", pa.timestamp("us", "UTC")),
    ("timestampType", pa.int32()),
]
SCHEMA = pa.schema(_FIELDS)
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADERS_TYPE))

BATCH_ROWS_MAX = 16 * 1024
CHUNK_BYTES = 8 * 1024 * 1024
"""Values of one Arrow batch, at most, unless one record alone is larger."""

_CREATE_TIME, _LOG_APPEND_TIME = 0, 1
_VALUE = SCHEMA.get_field_index("value")


class Decoder:
    """Feed it what fetches return, in order; it gives Arrow batches of the records in [start, end).

    With `committed`, records of aborted transactions are left out; control records always are. `objects` are the fields
    of a last column, with those values that are plain JSON.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        start: int,
        end: int,
        *,
        include_headers: bool = False,
        batch_rows_max: int = BATCH_ROWS_MAX,
        committed: bool = True,
        check_crcs: bool = True,
        objects: Sequence[JsonField] = (),
        kernel: Kernel | None = None,
    ) -> None:
        self.next_offset = start
        """The offset to fetch from next: it moves over gaps, control batches and aborted records."""
        self._where = f"{topic}-{partition}"
        self._start, self._end = start, end
        self._committed, self._check_crcs = committed, check_crcs
        self._kernel = kernel or chosen_kernel()
        rows_max = max(1, min(batch_rows_max, end - start))  # of a small range everything stays small
        self._rows = _RowBuilder(topic, partition, rows_max, include_headers, self._kernel, objects)

    @property
    def done(self) -> bool:
        return self.next_offset >= self._end

    def feed(self, records: Buffer, aborted: Sequence[tuple[int, int]] = ()) -> Iterator[pa.RecordBatch]:
        """`aborted` holds (producer id, first offset) of the aborted transactions, as in the fetch response."""
        transactions = AbortedWalk(aborted)
        for position, header in iterate_batches(records):
            if self.done:
                return
            if header.next_offset > self.next_offset:
                if self._check_crcs:
                    check_crc(records, position, header)
                if self._wants(records, position, header, transactions):
                    yield from self._decode(records, position, header)
                self.next_offset = header.next_offset

    def flush(self) -> pa.RecordBatch | None:
        """The rows that did not yet fill a batch, or None."""
        return self._rows.take()

    def _wants(self, records: Buffer, position: int, header: BatchHeader, transactions: AbortedWalk) -> bool:
        if header.is_control:
            if self._committed:
                transactions.pass_marker(records, position, header)
            return False
        return not (self._committed and header.is_transactional and transactions.covers(header))

    def _decode(self, records: Buffer, position: int, header: BatchHeader) -> Iterator[pa.RecordBatch]:
        at = self._cursor(records, position, header)
        kind = _LOG_APPEND_TIME if header.uses_log_append_time else _CREATE_TIME
        while True:
            columns = self._rows.columns
            before = columns.rows
            status = self._kernel.parse(at, columns)
            self._rows.added(columns.rows - before, kind)
            if status == Status.DONE:
                return
            if status != Status.FULL:
                raise CorruptBatch(f"the batch of {self._where} at offset {header.base_offset}: {REASONS[status]}")
            batch = self._rows.take(columns.needed)
            if batch is not None:
                yield batch

    def _cursor(self, records: Buffer, position: int, header: BatchHeader) -> Cursor:
        payload: Buffer = memoryview(records)[position + BATCH_OVERHEAD : position + header.size]
        if header.codec:
            payload = decompress(_codec(header), payload)
        if not 0 <= header.record_count <= len(payload):
            raise CorruptBatch(f"{len(payload)} bytes cannot hold {header.record_count} records")
        return cursor(
            payload, records=header.record_count, base_offset=header.base_offset,
            base_timestamp=header.base_timestamp,
            log_append_time=header.max_timestamp if header.uses_log_append_time else None,
            start=max(self._start, self.next_offset), end=self._end,
        )  # fmt: skip


def _codec(header: BatchHeader) -> Codec:
    try:
        return Codec(header.codec)
    except ValueError:
        raise CorruptBatch(f"compression codec {header.codec} is unknown") from None


class _RowBuilder:
    """Rows that gather until they make an Arrow batch."""

    def __init__(
        self,
        topic: str,
        partition: int,
        rows_max: int,
        with_headers: bool,
        kernel: Kernel,
        objects: Sequence[JsonField],
    ) -> None:
        self._with_headers = with_headers
        self._kernel, self._objects = kernel, objects
        self._room = ChunkCapacity(
            rows_max, CHUNK_BYTES, CHUNK_BYTES, 4 * rows_max if with_headers else 0, CHUNK_BYTES if with_headers else 0,
            CHUNK_BYTES if with_headers else 0,
        )  # fmt: skip
        self._schema = SCHEMA_WITH_HEADERS if with_headers else SCHEMA
        if objects:
            self._schema = self._schema.append(pa.field(PLAIN, arrow_type(objects)))
        # Columns that say the same in every row are made once, and cut to length.
        self._topics = constant_text(topic, rows_max)
        self._partitions = int32_column(np.full(rows_max, partition, np.int32))
        self._kinds = {
            kind: int32_column(np.full(rows_max, kind, np.int32)) for kind in (_CREATE_TIME, _LOG_APPEND_TIME)
        }
        self._columns: Columns | None = None
        self._runs: list[tuple[int, int]] = []

    @property
    def columns(self) -> Columns:
        if self._columns is None:
            self._columns = Columns(self._room, with_headers=self._with_headers)
        return self._columns

    def added(self, rows: int, kind: int) -> None:
        if rows:
            self._runs.append((rows, kind))

    def take(self, room: ChunkCapacity | None = None) -> pa.RecordBatch | None:
        """The rows so far as a batch; the next ones get at least the room asked for."""
        columns, runs = self._columns, self._runs
        self._columns = None
        if room is not None and self._room.at_least(room) != self._room:
            self._columns = Columns(self._room.at_least(room), with_headers=self._with_headers)
        self._runs = []
        if columns is None or not columns.rows:
            return None
        rows = columns.rows
        arrays = [
            binary_column(
                pa.binary(), rows, columns.key_offsets, columns.key_data, columns.key_valid, columns.key_nulls
            ),
            binary_column(
                pa.binary(), rows, columns.value_offsets, columns.value_data, columns.value_valid, columns.value_nulls
            ),
            self._topics.slice(0, rows),
            self._partitions.slice(0, rows),
            column(pa.int64(), rows, [None, buffer(columns.offsets[:rows])], 0),
            column(pa.timestamp("us", "UTC"), rows, [None, buffer(columns.timestamps[:rows])], 0),
            self._kind_column(runs, rows),
        ]
        if self._with_headers:
            arrays.append(_headers(columns))
        if self._objects:
            arrays.append(read_objects(self._kernel, arrays[_VALUE], self._objects))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _kind_column(self, runs: list[tuple[int, int]], rows: int) -> Column:
        kinds = {kind for _, kind in runs}
        if len(kinds) == 1:
            return self._kinds[kinds.pop()].slice(0, rows)
        counts, values = zip(*runs, strict=True)
        return int32_column(np.repeat(np.array(values, np.int32), counts))


def _headers(columns: Columns) -> Column:
    count = columns.headers
    names = binary_column(pa.string(), count, columns.header_key_offsets, columns.header_key_data, None, 0)
    values = binary_column(
        pa.binary(), count, columns.header_value_offsets, columns.header_value_data, columns.header_value_valid,
        columns.header_value_nulls,
    )  # fmt: skip
    entries = column(HEADER_TYPE, count, [None], 0, [names, values])
    lists = [buffer(columns.header_valid), buffer(columns.header_lists[: columns.rows + 1])]
    return column(HEADERS_TYPE, columns.rows, lists, columns.header_nulls, [entries])
