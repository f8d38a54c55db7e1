"""A log that is filled from another one: batches as they come, gaps, beginning anew further on."""

from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records, values


def sent(*offsets: int, size: int = 10, leader_epoch: int = 0) -> bytes:
    return b"".join(
        bytes(batch(b"%d" % offset + b"x" * size, base_offset=offset, leader_epoch=leader_epoch)) for offset in offsets
    )


def test_more_than_a_segment_holds_is_spread_over_several(kit: LogKit) -> None:
    log = kit.create(segment_bytes=1000)
    result = log.append_as_follower(sent(*range(50), size=100), NOW_MS)
    assert (result.base_offset, result.last_offset, result.batch_count, log.end_offset) == (0, 49, 50, 50)
    assert all(segment.size <= 1000 for segment in log.segments.all)
    assert len(log.segments) == 10
    assert [record.offset for record in read_records(kit.reopen(log, clean=False))] == list(range(50))


def test_a_batch_larger_than_a_segment_is_taken_all_the_same(kit: LogKit) -> None:
    log = kit.create(segment_bytes=200)
    log.append_as_follower(sent(0, size=900) + sent(1, size=900), NOW_MS)
    assert [segment.base_offset for segment in log.segments.all] == [0, 1]
    assert len(values(log)) == 2


def test_offsets_too_far_apart_for_one_segment_go_to_two(kit: LogKit) -> None:
    log = kit.create()
    far = 2**31 + 10
    log.append_as_follower(sent(5, far), NOW_MS)
    assert [segment.base_offset for segment in log.segments.all] == [0, far]
    assert [record.offset for record in read_records(log)] == [5, far]


def test_an_end_that_compaction_emptied_is_followed(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_follower(sent(0, 1), NOW_MS)
    log.skip_to(9, NOW_MS)
    log.skip_to(3, NOW_MS)
    assert log.end_offset == 9
    log.append_as_follower(sent(9, 12), NOW_MS)
    assert [record.offset for record in read_records(kit.reopen(log, clean=False))] == [0, 1, 9, 12]


def test_beginning_anew_forgets_everything(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_follower(sent(0, 1, leader_epoch=3), NOW_MS)
    log.append_as_leader(batch(b"p", producer_id=7, sequence=0), 3, NOW_MS)
    log.flush()
    log.restart_at(1000)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (1000, 1000, 1000)
    assert log.leader_epochs.entries() == []
    assert not log.producers.entries
    assert log.cut_to == 0
    log.append_as_follower(sent(1000, 1001, leader_epoch=4), NOW_MS)
    log = kit.reopen(log, clean=False)
    assert [record.offset for record in read_records(log)] == [1000, 1001]
    assert log.leader_epochs.entries() == [(4, 1000)]


def test_the_lowest_cut_is_remembered(kit: LogKit) -> None:
    log = kit.create()
    log.append_as_follower(sent(*range(10)), NOW_MS)
    assert log.cut_to is None
    log.truncate_to(4)
    log.append_as_follower(sent(4, 5, 6), NOW_MS)
    log.truncate_to(6)
    assert log.cut_to == 4
