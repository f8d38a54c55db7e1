"""What a cleaning leaves: the newest record of each key, where it was."""

import pytest
from tests.unit.broker.storage.compaction.conftest import append, clean, compacted, roll
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, read_records

from ottla.broker.storage.log import Log
from ottla.protocol.compression import Codec


def test_the_newest_record_of_each_key_stays_where_it_was(log: Log) -> None:
    for number in range(30):
        append(log, (b"a%d" % (number % 3), b"%d" % number), (b"b%d" % (number % 5), b"%d" % number))
    roll(log)
    end = log.end_offset
    before = {record.offset: record for record in read_records(log)}
    done = clean(log)
    assert done is not None
    assert done.cleaned_to == log.segments.active.base_offset
    after = read_records(log)
    assert all(before[record.offset] == record for record in after)
    expected = {}
    for record in before.values():
        if record.offset < done.cleaned_to:
            expected[record.key] = record.offset
    assert [r.offset for r in after if r.offset < done.cleaned_to] == sorted(expected.values())
    assert log.end_offset == end
    assert clean(log) is None


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("read_bytes", [100, 1 << 20])
def test_every_codec(kit: LogKit, codec: Codec, read_bytes: int) -> None:
    log = compacted(kit)
    for number in range(40):
        pairs = [(b"k%d" % (key % 7), b"value %d" % (number * 10 + key)) for key in range(number % 4 + 1)]
        append(log, *pairs, codec=codec)
    roll(log)
    expected = {r.key: r.value for r in read_records(log)}
    clean(log, read_bytes=read_bytes)
    found = read_records(log)
    assert {r.key: r.value for r in found} == expected
    assert len(found) < 20
    log = kit.reopen(log, clean=False)
    assert read_records(log) == found


def test_timestamps_survive_a_delete_horizon(log: Log) -> None:
    append(log, (b"k", b"v"), (b"dead", None), (b"l", b"w"), timestamp=NOW_MS - 5000)
    roll(log)
    before = read_records(log)
    clean(log)
    assert read_records(log)[:3] == before[:3]
