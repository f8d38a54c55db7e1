"""Copies of topics: which topic of the target may be written, what a truncated source is, what goes how fast."""

from uuid import UUID

import pytest

from ottla.model.names import TopicPartition
from ottla.protocol.records import NewRecord, encode_batch
from ottla.spark.copying.results import Copied, from_value, to_batch
from ottla.spark.copying.task import whole_batches
from ottla.spark.copying.words import Fits, fits, is_copy_from, refusal, source_of, truncated
from ottla.spark.reading.flow_option import NO_FLOW, CopyTo, FlowOption, taken, written
from ottla.spark.reading.pacing import Pace, share

ONE, OTHER = source_of("east", UUID(int=1)), source_of("east", UUID(int=2))
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


@pytest.mark.parametrize(
    ("setting", "is_empty", "found"),
    [
        (ONE, False, Fits.YES),
        ("", True, Fits.TAKE),
        ("", False, Fits.OWN),
        (OTHER, False, Fits.MADE_AGAIN),
        (source_of("north", UUID(int=1)), False, Fits.OTHER),
        (f"promoting:{ONE}", False, Fits.PROMOTING),
    ],
)
def test_what_a_topic_of_the_target_is(setting: str, is_empty: bool, found: Fits) -> None:
    assert fits(setting, ONE, is_empty=is_empty) is found
    if found in (Fits.OWN, Fits.OTHER, Fits.PROMOTING):
        assert "`orders`" in refusal("orders", found, setting)


def test_a_copy_does_not_go_back() -> None:
    assert is_copy_from(ONE, "east")
    assert is_copy_from(f"promoting:{ONE}", "east")
    assert not is_copy_from(ONE, "west")
    assert not is_copy_from("", "")


def test_a_source_is_truncated_if_its_epoch_ends_before_what_was_copied_of_it() -> None:
    assert truncated({A: 10, B: 10}, {A: 10, B: 7}) == {B: 7}
    assert truncated({A: 10}, {A: 12}) == {}
    assert truncated({A: 10}, {A: -1}) == {}, "the source does not know the epoch any more: retention took it"
    assert truncated({A: 10}, {}) == {}


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    first = encode_batch([NewRecord(None, b"a", 1)] * 3, base_offset=7, leader_epoch=4)
    second = encode_batch([NewRecord(None, b"b", 1)], base_offset=10)
    found = whole_batches(first + second[:-1])
    assert found is not None
    assert (bytes(found.records), found.records_in, found.last.leader_epoch) == (bytes(first), 3, 4)
    assert whole_batches(b"") is None


def test_a_row_tells_what_was_copied() -> None:
    copied = Copied(records=3, bytes=100, end=17, epoch=2)
    for include_headers in (False, True):
        batch = to_batch(A, copied, include_headers=include_headers)
        assert ("headers" in batch.schema.names) is include_headers
        row = batch.to_pylist()[0]
        assert (row["topic"], row["partition"], row["offset"]) == ("a", 0, 17)
        assert from_value(row["value"]) == copied


def test_the_option_of_a_flow_is_taken_out_of_the_others() -> None:
    copy_to = CopyTo(target={"bootstrap.servers": "w:1"}, source_id="east", positions="g")
    flow = FlowOption(paused="/nowhere", bytes_per_second=5, copy_to=copy_to)
    assert taken({"subscribe": "a"} | written(flow)) == ({"subscribe": "a"}, flow)
    assert taken({"subscribe": "a"}) == ({"subscribe": "a"}, NO_FLOW)
    assert not flow.is_paused


def test_a_pace_is_kept_and_silence_is_not_saved_up() -> None:
    now = [0.0]
    pace = Pace(100, lambda: now[0])
    assert pace.pause_s(50) == 0.5
    assert pace.pause_s(50) == 1.0
    now[0] = 10.0
    assert pace.pause_s(100) == 1.0
    assert (share(100, 4), share(100, 0), share(None, 4)) == (25, 100, None)
