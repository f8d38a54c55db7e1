"""Records read into arrays are the records that the codec decodes, whatever the shape of the batches."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ottla.broker.storage.compaction.batches import (
    SIDE_BY_SIDE_MIN,
    Stretch,
    check_crcs,
    read_records,
    read_stretch,
)
from ottla.protocol.compression import Codec
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import BATCH_OVERHEAD, NewRecord, decode_batch, encode_batch

NOW_MS = 1_700_000_000_000


def make_batches(seed: int, batches: int, records: int, codecs: list[Codec]) -> list[bytearray]:
    chance = random.Random(seed)
    made, offset = [], chance.choice([0, 5, 2**40])
    for _ in range(batches):
        count = chance.randint(1, records)
        made.append(
            encode_batch(
                [
                    NewRecord(
                        chance.choice([None, b"", b"k", chance.randbytes(chance.randrange(200))]),
                        chance.choice([None, b"", chance.randbytes(chance.randrange(70)), bytes(20_000)]),
                        NOW_MS + chance.randint(-(10**10), 10**10),
                        [("name", b"x")] * chance.randrange(3),
                    )
                    for _ in range(count)
                ],
                base_offset=offset, codec=chance.choice(codecs),
            )
        )  # fmt: skip
        offset += count + chance.randrange(3)
    return made


def stretches(path: Path, data: bytes, wanted_bytes: int) -> Iterator[Stretch]:
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        position = 0
        while position < len(data):
            stretch = read_stretch(descriptor, position, len(data), wanted_bytes)
            check_crcs(stretch)
            yield stretch
            position += stretch.length
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("wanted_bytes", [1, 50_000, 1 << 24])
@pytest.mark.parametrize("codecs", [[Codec.NONE], [Codec.ZSTD], list(Codec)])
@pytest.mark.parametrize(("batches", "records"), [(3, 40), (3 * SIDE_BY_SIDE_MIN, 1), (2 * SIDE_BY_SIDE_MIN, 9)])
def test_arrays_hold_what_the_codec_decodes(
    tmp_path: Path, wanted_bytes: int, codecs: list[Codec], batches: int, records: int
) -> None:
    made = make_batches(batches + records, batches, records, codecs)
    seen = 0
    for stretch in stretches(tmp_path / "log", b"".join(made), wanted_bytes):
        found = read_records(stretch, np.arange(len(stretch.starts)))
        expected = [r for number in range(len(stretch.starts)) for r in decode_batch(stretch.batch(number))]
        base_timestamps = stretch.headers["base_timestamp"][found.batch]
        keys = [
            found.data[start : start + length].tobytes() if length >= 0 else None
            for start, length in zip(found.key_start.tolist(), found.key_length.tolist(), strict=True)
        ]
        assert keys == [r.key for r in expected]
        assert found.offset.tolist() == [r.offset for r in expected]
        assert (found.timestamp_delta + base_timestamps).tolist() == [r.timestamp for r in expected]
        assert found.value_length.tolist() == [-1 if r.value is None else len(r.value) for r in expected]
        seen += len(stretch.starts)
    assert seen == batches


@pytest.mark.parametrize("count", [1, 2 * SIDE_BY_SIDE_MIN])
def test_garbage_is_noticed(tmp_path: Path, count: int) -> None:
    chance = random.Random(7)
    noticed = 0
    for attempt in range(300):
        made = make_batches(attempt, count, 5, [Codec.NONE])
        victim = chance.randrange(count)
        made[victim][chance.randrange(BATCH_OVERHEAD, len(made[victim]))] ^= 1 << chance.randrange(8)
        data = b"".join(made)
        with pytest.raises(CorruptBatch, match="CRC"):
            list(stretches(tmp_path / "log", data, 1 << 24))
        descriptor = os.open(tmp_path / "log", os.O_RDONLY)
        stretch = read_stretch(descriptor, 0, len(data), 1 << 24)
        os.close(descriptor)
        try:  # even if the CRC were right, nothing outside of the batch is read
            read_records(stretch, np.arange(count))
        except CorruptBatch:
            noticed += 1
    assert noticed > 10


@pytest.mark.parametrize("cut", [1, 30, 61, 100])
def test_a_batch_that_is_cut_short(tmp_path: Path, cut: int) -> None:
    data = bytes(make_batches(1, 1, 30, [Codec.NONE])[0])
    with pytest.raises(CorruptBatch, match="cut short"):
        list(stretches(tmp_path / "log", data + data[:cut], 1 << 24))
