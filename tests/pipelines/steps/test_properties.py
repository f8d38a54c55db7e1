"""Windows, duplicates and joins against models in plain Python, over history."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from tests.few_examples import few_long_examples
from tests.pipelines.steps.conftest import make_step

from ottla.pipelines.steps.base import INPUT, StepContext

START = datetime(2024, 1, 1, tzinfo=UTC)
EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(-5, 5), st.integers(0, 7200)), min_size=20, max_size=80)

Event = tuple[str, int, int]
"""Key, number, seconds after START."""


def frame_of(spark: SparkSession, events: list[Event], names: str = "id STRING, n INT, second INT") -> DataFrame:
    frame = spark.createDataFrame(events, names).coalesce(1)
    second = frame.columns[2]
    return frame.withColumn("at", sf.timestamp_seconds(sf.lit(int(START.timestamp())) + sf.col(second)))


def apply(spark: SparkSession, kind: str, options: dict[str, Any], frame: DataFrame, **tables: DataFrame) -> DataFrame:
    context = StepContext(
        spark=spark, pipeline="p", label=f"1 {kind}", base_dir=Path(), streaming=False,
        tables={**tables, INPUT: frame}, reject=None,
    )  # fmt: skip
    return make_step(kind, options).apply(frame, context)


def seconds(moment: datetime) -> int:
    return int((moment.astimezone(UTC) - START) / timedelta(seconds=1))


@few_long_examples
@given(events=EVENTS, slide=st.sampled_from([None, 60, 120, 300]))
def test_a_row_counts_in_every_window_that_holds_its_time(
    spark: SparkSession, events: list[Event], slide: int | None
) -> None:
    size, step = 600, slide or 600
    expected: dict[tuple[str, int], int] = defaultdict(int)
    for key, n, second in events:
        first = (second // step) * step
        for start in range(first, second - size, -step):
            expected[key, start] += n
    options = {"time": "at", "size": f"{size} seconds", "group_by": ["id"], "aggregates": {"total": "sum(n)"}}
    options |= {"slide": f"{slide} seconds"} if slide else {}
    rows = apply(spark, "window", options, frame_of(spark, events)).collect()
    assert {(row.id, seconds(row.window_start)): row.total for row in rows} == expected
    assert {seconds(row.window_end) - seconds(row.window_start) for row in rows} == {size}


@few_long_examples
@given(events=EVENTS)
def test_a_session_goes_on_as_long_as_no_gap_is_too_wide(spark: SparkSession, events: list[Event]) -> None:
    gap = 200
    expected: Counter[tuple[str, int, int, int]] = Counter()
    for key in "abc":
        sessions: list[list[int]] = []
        for second in sorted(second for name, _, second in events if name == key):
            if sessions and second < sessions[-1][-1] + gap:
                sessions[-1].append(second)
            else:
                sessions.append([second])
        expected.update((key, session[0], session[-1] + gap, len(session)) for session in sessions)
    options = {"time": "at", "gap": f"{gap} seconds", "group_by": ["id"], "aggregates": {"n": "count(*)"}}
    rows = apply(spark, "window", options, frame_of(spark, events)).collect()
    found = Counter((row.id, seconds(row.window_start), seconds(row.window_end), row.n) for row in rows)
    assert found == expected


@few_long_examples
@given(events=EVENTS, keys=st.sampled_from([["id"], ["id", "n"], []]))
def test_of_rows_with_the_same_keys_one_stays(spark: SparkSession, events: list[Event], keys: list[str]) -> None:
    frame = frame_of(spark, events)
    chosen = keys or frame.columns
    rows = apply(spark, "deduplicate", {"keys": keys}, frame).collect()
    found = [tuple(row[name] for name in chosen) for row in rows]
    assert sorted(found) == sorted({tuple(row[name] for name in chosen) for row in frame.collect()})
    assert {tuple(row) for row in rows} <= {tuple(row) for row in frame.collect()}


@few_long_examples
@given(
    left=EVENTS,
    right=EVENTS,
    kind=st.sampled_from(["inner", "left"]),
    order=st.sampled_from(["any", "after", "before"]),
)
def test_rows_meet_if_keys_are_equal_and_times_near(
    spark: SparkSession, left: list[Event], right: list[Event], kind: str, order: str
) -> None:
    within = 300
    lowest, highest = (0 if order == "after" else -within), (0 if order == "before" else within)
    expected: Counter[tuple[Any, ...]] = Counter()
    for mine in left:
        met = [theirs for theirs in right if theirs[0] == mine[0] and lowest <= theirs[2] - mine[2] <= highest]
        expected.update((*mine, *theirs[1:]) for theirs in met)
        if not met and kind == "left":
            expected[*mine, None, None] += 1
    options = {
        "with": "others", "on": {"id": "key"}, "type": kind, "columns": ["m", "moment"], "time": "at",
        "within": f"{within} seconds", "order": order,
    }  # fmt: skip
    others = frame_of(spark, right, "key STRING, m INT, moment INT")
    rows = apply(spark, "join", options, frame_of(spark, left), others=others).collect()
    assert Counter((row.id, row.n, row.second, row.m, row.moment) for row in rows) == expected
