"""Increments: whatever happens between runs, a backup answers for every offset that its topic had, once."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.backup.samples import stored

from ottla.model.names import TopicPartition
from ottla.pipelines.backup.manifest import BackupProblem, GroupOffset, Manifest, wrong_partition
from ottla.pipelines.backup.planning import (
    SMALL_OBJECTS_MAX,
    FoundPartition,
    FoundTopic,
    PartDone,
    Plan,
    clamped,
    finished,
    make_plan,
    matching,
    may_resume,
)


def plan(found: Sequence[FoundTopic], last: Manifest | None = None, run: str = "r1") -> Plan:
    return make_plan(
        found, last, backup=run, kind="parquet",
        cluster_id="c", selection=".*", now_ms=1,
    )  # fmt: skip


def done(planned: Plan) -> list[PartDone]:
    return [
        PartDone(number=part.number, objects=[stored(part.start, part.end, run=planned.id)]) for part in planned.parts
    ]


def complete(planned: Plan) -> Manifest:
    return Manifest(
        id=planned.id, parent=planned.parent, kind=planned.kind, cluster_id="c", selection=".*", begun_ms=1, taken_ms=2,
        topics=finished(planned, done(planned)), groups=[],
    )  # fmt: skip


def topic(*partitions: FoundPartition, topic_id: str = "id") -> FoundTopic:
    return FoundTopic("t", topic_id, 1, {}, partitions)


STEPS = st.lists(
    st.tuples(st.integers(0, 5_000), st.integers(0, 5_000), st.sampled_from(["same", "same", "same", "anew", "cut"])),
    min_size=1,
    max_size=8,
)


@given(STEPS, st.one_of(st.none(), st.integers(1, 10**9)))
def test_every_backup_of_a_chain_answers_for_every_offset(steps: list[tuple[int, int, str]], size: int | None) -> None:
    last: Manifest | None = None
    start = end = generation = 0
    for number, (more, trimmed, what) in enumerate(steps):
        if what == "anew":
            generation, start, end = generation + 1, 0, 0
        if what == "cut":
            end = max(start, end - more)
        end += more
        start = min(end, start + trimmed)
        found = topic(FoundPartition(start, end, 0, size), topic_id=str(generation))
        planned = plan([found], last, f"r{number}")
        last = complete(planned)
        (partition,) = last.topics[0].partitions
        assert wrong_partition("t", partition) == []
        assert (partition.log_start, partition.end) == (start, end)
        assert all(each.end > start for each in partition.objects), "what the log has not any more is not carried along"


def test_an_increment_reads_only_what_is_new() -> None:
    first = complete(plan([topic(FoundPartition(0, 100), FoundPartition(0, 0))]))
    second = plan([topic(FoundPartition(0, 130), FoundPartition(0, 7))], first, "r2")
    assert [(part.partition, part.start, part.end, part.opens) for part in second.parts] == [
        (0, 100, 130, True), (1, 0, 7, True),
    ]  # fmt: skip
    assert second.parent == "r1"
    assert not plan([topic(FoundPartition(0, 100), FoundPartition(0, 0))], first, "r2").parts


def test_small_objects_at_the_end_become_one_when_they_are_many() -> None:
    last: Manifest | None = None
    counts = []
    for end in range(1, 100):
        last = complete(plan([topic(FoundPartition(0, end))], last, f"r{end}"))
        (partition,) = last.topics[0].partitions
        assert wrong_partition("t", partition) == []
        assert partition.records == end
        counts.append(len(partition.objects))
    assert max(counts) == SMALL_OBJECTS_MAX
    assert not plan([topic(FoundPartition(0, 99))], last, "r100").parts, "and only together with what is new"


def test_large_partitions_are_read_in_parts_of_one_size() -> None:
    planned = plan([topic(FoundPartition(0, 1_000_000, 0, 1 << 30))])
    assert len(planned.parts) == 32
    assert [part.opens for part in planned.parts] == [True, *[False] * 31]
    assert abs(planned.estimated_bytes - (1 << 30)) < 1 << 20


def test_a_topic_made_anew_or_cut_is_read_from_its_beginning_and_told() -> None:
    first = complete(plan([topic(FoundPartition(0, 100))]))
    anew = plan([topic(FoundPartition(0, 200), topic_id="other")], first, "r2")
    assert anew.parts[0].start == 0
    assert "made anew" in anew.notes[0]
    cut = plan([topic(FoundPartition(0, 50))], first, "r2")
    assert cut.parts[0].start == 0
    assert "shorter" in cut.notes[0]
    late = plan([topic(FoundPartition(150, 200))], first, "r2")
    assert late.parts[0].start == 150
    assert late.notes == ["t-0: offsets 100 to 149 were deleted before any backup read them"]


def test_a_run_that_was_cut_short_is_gone_on_with_only_if_it_is_the_same() -> None:
    begun = plan([topic(FoundPartition(0, 100))])
    later = plan([topic(FoundPartition(0, 120))], None, "r2")
    assert may_resume(begun, later)
    assert not may_resume(begun, plan([topic(FoundPartition(0, 120), topic_id="other")], None, "r2"))
    assert not may_resume(begun, plan([topic(FoundPartition(0, 120))], complete(begun), "r2"))
    assert not may_resume(begun, msgspec.structs.replace(later, kind="raw"))
    assert not may_resume(begun, msgspec.structs.replace(later, selection="t"))
    with pytest.raises(BackupProblem, match="1 parts of r1 have not been read"):
        finished(begun, [])


def test_groups_are_clamped_to_what_the_backup_has() -> None:
    topics = complete(plan([topic(FoundPartition(0, 100), FoundPartition(0, 10))])).topics
    committed = {
        TopicPartition(name, number): GroupOffset(topic=name, partition=number, offset=offset, metadata="m")
        for name, number, offset in (("t", 0, 120), ("t", 1, 5), ("other", 0, 1))
    }
    kept = clamped("g", committed, topics)
    assert kept is not None
    assert [(each.partition, each.offset, each.metadata) for each in kept.offsets] == [(0, 100, "m"), (1, 5, "m")]
    assert clamped("g", {TopicPartition("x", 0): GroupOffset(topic="x", partition=0, offset=1)}, topics) is None


def test_a_wrong_pattern_is_told() -> None:
    with pytest.raises(BackupProblem, match=r"--topics: `\(` is not a regular expression"):
        matching("(")
