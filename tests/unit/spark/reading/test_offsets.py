"""Decisions about offsets: their JSON, limits, and how ranges are divided among tasks."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.model.names import TopicPartition
from ottla.spark.errors import InvalidOption
from ottla.spark.reading.offsets import (
    OffsetRange,
    StreamOffset,
    divide,
    gather,
    limit_rows,
    missing_and_surplus,
    parse_assignment,
    parse_offsets,
    read_checkpointed,
    waiting_rows,
)

partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "d_e-f"]), st.integers(0, 20))
offsets = st.dictionaries(partitions, st.integers(0, 2**62), max_size=12)
sizes = st.dictionaries(partitions, st.tuples(st.integers(0, 10**9), st.integers(0, 10**6)), min_size=1, max_size=12)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


# JSON.


def test_the_json_is_that_of_sparks_connector() -> None:
    assert StreamOffset({B0: 7, A1: 5, A0: 3}).to_json() == {"a": {"0": 3, "1": 5}, "b": {"0": 7}}
    assert parse_offsets('{"a":{"0":23,"1":-1},"b":{"0":-2}}', "startingOffsets") == {A0: 23, A1: -1, B0: -2}


@given(offsets, offsets, st.none() | st.text(max_size=5), st.dictionaries(st.sampled_from("ab"), st.uuids()))
def test_an_offset_survives_the_checkpoint(
    where: dict[TopicPartition, int], begins: dict[TopicPartition, int], group: str | None, topics: dict[str, UUID]
) -> None:
    before = StreamOffset(where, begins, group, topics)
    text = json.dumps(before.to_json())
    assert StreamOffset.from_json(json.loads(text)) == before
    assert read_checkpointed(text) == where


@given(st.lists(st.tuples(partitions, st.integers(0, 9)), unique_by=lambda pair: pair[0]))
def test_the_text_does_not_depend_on_the_order_in_which_partitions_were_found(
    pairs: list[tuple[TopicPartition, int]],
) -> None:
    there, back = StreamOffset(dict(pairs)), StreamOffset(dict(reversed(pairs)))
    assert json.dumps(there.to_json()) == json.dumps(back.to_json())


def test_ids_of_topics_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidOption, match="ids of topics that are none"):
        StreamOffset.from_json({"a": {"0": 3}, "#topics": {"a": "x"}})


@pytest.mark.parametrize("text", ["earliest", "[]", '{"a":3}', '{"a":{"x":3}}', '{"a":{"0":"3"}}', '{"a":{"0":true}}'])
def test_other_json_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidOption, match=r'endingOffsets wants JSON such as \{"topicA":\{"0":23'):
        parse_offsets(text, "endingOffsets")


def test_assignments() -> None:
    assert parse_assignment('{"b":[0],"a":[1,0,1]}') == [A0, A1, B0]
    for text in ("x", "{}", '{"a":0}', '{"a":[-1]}', '{"a":["0"]}'):
        with pytest.raises(InvalidOption, match="assign wants JSON"):
            parse_assignment(text)


# Limits.


@given(sizes, st.integers(1, 10**7))
def test_a_limit_takes_about_as_many_and_starves_nobody(
    found: dict[TopicPartition, tuple[int, int]], rows_max: int
) -> None:
    begins = {partition: begin for partition, (begin, _) in found.items()}
    latest = {partition: begin + size for partition, (begin, size) in found.items()}
    ends = limit_rows(begins, latest, rows_max)
    taken = {partition: ends[partition] - begins[partition] for partition in ends}
    waiting = {partition: latest[partition] - begins[partition] for partition in latest}
    assert ends.keys() == latest.keys()
    assert all(begins[tp] <= ends[tp] <= latest[tp] for tp in ends)
    assert all(taken[tp] > 0 for tp in taken if waiting[tp] > 0)
    # A partition with next to nothing gets one offset all the same, so the limit may be passed by as many.
    assert sum(taken.values()) <= rows_max + len(ends)
    assert sum(taken.values()) >= min(rows_max, sum(waiting.values())) - len(ends)


@given(sizes, st.integers(1, 10**7))
def test_limited_batches_reach_the_end(found: dict[TopicPartition, tuple[int, int]], rows_max: int) -> None:
    begins = {partition: begin for partition, (begin, _) in found.items()}
    latest = {partition: begin + size for partition, (begin, size) in found.items()}
    rows_max = max(rows_max, waiting_rows(begins, latest) // 20)
    for _ in range(60):
        if begins == latest:
            break
        begins = limit_rows(begins, latest, rows_max)
    assert begins == latest


def test_shares_are_proportional() -> None:
    ends = limit_rows({A0: 0, A1: 100, B0: 0}, {A0: 900, A1: 190, B0: 10}, 100)
    assert ends == {A0: 90, A1: 109, B0: 1}


def test_waiting_rows_count_nothing_negative() -> None:
    assert waiting_rows({A0: 5, A1: 9}, {A0: 8, A1: 2}) == 3


# Dividing.


@given(sizes, st.none() | st.integers(1, 64), st.none() | st.integers(1, 10**6))
def test_parts_cover_every_offset_once(
    found: dict[TopicPartition, tuple[int, int]], parts_min: int | None, rows_max: int | None
) -> None:
    if rows_max is not None:
        rows_max = max(rows_max, sum(size for _, size in found.values()) // 200)
    ranges = [OffsetRange(tp, begin, begin + size) for tp, (begin, size) in found.items()]
    parts = divide(ranges, parts_min=parts_min, rows_per_part_max=rows_max)
    for wanted in ranges:
        position = wanted.start
        for part in sorted(part for part in parts if part.partition == wanted.partition):
            assert part.start == position
            assert part.size > 0
            position = part.end
        assert position == wanted.end
    if rows_max is not None:
        assert all(part.size <= rows_max for part in parts)


@given(sizes, st.integers(1, 64))
def test_there_are_about_as_many_parts_as_asked_for(
    found: dict[TopicPartition, tuple[int, int]], parts_min: int
) -> None:
    ranges = [OffsetRange(tp, begin, begin + size) for tp, (begin, size) in found.items() if size > 0]
    parts = divide(ranges, parts_min=parts_min)
    total = sum(found.size for found in ranges)
    assert len(parts) >= min(parts_min, total) - len(ranges)
    assert len(parts) <= max(parts_min, len(ranges)) + len(ranges)


def test_one_big_partition_is_split_and_small_ones_are_not() -> None:
    parts = divide([OffsetRange(A0, 0, 1000), OffsetRange(A1, 5, 6), OffsetRange(B0, 3, 3)], parts_min=4)
    assert parts == [
        OffsetRange(A0, 0, 333), OffsetRange(A0, 333, 666), OffsetRange(A0, 666, 1000), OffsetRange(A1, 5, 6),
    ]  # fmt: skip


def test_without_a_minimum_each_partition_is_one_part() -> None:
    assert divide([OffsetRange(A0, 0, 10), OffsetRange(A1, 2, 2)], parts_min=None) == [OffsetRange(A0, 0, 10)]


# Offsets by hand.


def test_offsets_by_hand_name_every_partition() -> None:
    assert missing_and_surplus([A0, A1], [A0, A1], "startingOffsets") is None
    lacks = missing_and_surplus([A0], [A0, A1], "startingOffsets")
    assert lacks == "startingOffsets must name every partition that is read; it lacks a-1 (-2: earliest, -1: latest)"
    surplus = missing_and_surplus([A0, B0], [A0], "startingOffsets")
    assert surplus == "startingOffsets names b-0, which is not among the partitions that are read"


def test_small_ranges_share_tasks_and_large_ones_have_their_own() -> None:
    def parts(*sizes: int) -> list[OffsetRange]:
        return [OffsetRange(TopicPartition("t", number), 10, 10 + size) for number, size in enumerate(sizes)]

    def sizes(tasks: list[tuple[OffsetRange, ...]]) -> list[list[int]]:
        return [[part.size for part in task] for task in tasks]

    assert gather([]) == []
    assert sizes(gather(parts(4, 4, 4, 4))) == [[4, 4, 4, 4]]
    assert sizes(gather(parts(1_250, 1_250, 1_249, 1_249))) == [[1_250, 1_249], [1_250, 1_249]]
    assert sizes(gather(parts(9_000, 10, 10))) == [[9_000], [10], [10]]
    assert sizes(gather(parts(5_000, 20, 10))) == [[5_000], [20, 10]]
    assert sizes(gather(parts(50_000, 50_000, 50_000))) == [[50_000], [50_000], [50_000]]
