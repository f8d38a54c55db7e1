"""Rows to the bytes of a Parquet file, a row group at a time; pyarrow comes with the extra `spark`."""

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

from ottla.console.search.rows import COLUMNS, Shown, texts_of
from ottla.model.errors import OttlaError

GROUP_BYTES = 8 * 1024 * 1024
"""Of records that are gathered for one row group."""


class CannotExport(OttlaError):
    """The format cannot be written here; the message says what to do."""


def parquet_bytes(rows: AsyncIterator[list[Shown]]) -> AsyncIterator[bytes]:
    try:
        import pyarrow  # noqa: F401, PLC0415
    except ImportError:
        raise CannotExport("Parquet is written with pyarrow, which is not here: pip install 'ottla[spark]'") from None
    return _write(rows)


async def _write(rows: AsyncIterator[list[Shown]]) -> AsyncIterator[bytes]:
    file = _File()
    gathered: list[Shown] = []
    size = 0
    async for some in rows:
        for row in map(texts_of, some):
            gathered.append(row)
            size += 100 + sum(len(row[name] or "") for name in ("key", "value", "headers"))
            if size >= GROUP_BYTES:
                yield await asyncio.to_thread(file.group, gathered)
                gathered, size = [], 0
    if gathered:
        yield await asyncio.to_thread(file.group, gathered)
    yield await asyncio.to_thread(file.close)


class _File:
    """What has been written so far is taken out of the buffer: Parquet is written from the front to the end."""

    def __init__(self) -> None:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        kinds: dict[str, Any] = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("ms", "UTC")}
        self._schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(pa.PythonFile(self._sink, "w"), self._schema, compression="zstd")
        self._table = pa.Table.from_pydict
        self._pa = pa

    def group(self, rows: list[Shown]) -> bytes:
        pa = self._pa
        columns = {name: [row[name] for row in rows] for name in COLUMNS}
        columns["timestamp"] = pa.array(columns["timestamp"]).cast(pa.timestamp("ms", "UTC"))
        self._writer.write_table(self._table(columns, schema=self._schema))
        return self._sink.take()

    def close(self) -> bytes:
        self._writer.close()
        return self._sink.take()


class _Sink(io.RawIOBase):
    """Keeps what was written since it was last taken, and counts all of it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._position += len(self._parts[-1])
        return len(self._parts[-1])

    def take(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
