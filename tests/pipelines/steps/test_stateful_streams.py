"""Steps with state on real streams: out of order, late, again after a restart."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.pipelines.steps.conftest import Bench
from tests.pipelines.steps.streams import Feed, run_until_read

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.runner.failures import judge

EVENTS = "id STRING, n INT, at TIMESTAMP"

MakeFeed = Callable[..., Feed]


@pytest.fixture
def make_feed(spark: SparkSession, tmp_path: Path) -> MakeFeed:
    return lambda name="events", schema=EVENTS: Feed(spark, tmp_path / name, schema)


def event(key: str, n: int, clock: str) -> dict[str, Any]:
    return {"id": key, "n": n, "at": f"2024-01-01T{clock}Z"}


def clock(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%H:%M")


def test_tumbling_windows_close_once_count_late_rows_and_survive_a_restart(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    options = {
        "time": "at",
        "size": "10 minutes",
        "group_by": ["id"],
        "aggregates": {"total": "sum(n)"},
        "watermark": "10 minutes",
    }
    feed = make_feed()
    feed.add(event("a", 1, "10:05:00"), event("b", 5, "10:01:00"), event("a", 2, "09:59:00"))
    feed.add(event("a", 3, "10:04:00"))  # out of order, not late
    first = run_until_read(bench.apply("window", options, feed.stream()), tmp_path / "checkpoint")
    assert (first.rows, first.late_rows) == ([], 0)
    feed.add(event("a", 10, "10:30:00"))  # the watermark moves to 10:20: windows close with the next batch,
    feed.add(event("a", 20, "10:31:00"))  # and late rows are those of the batch after it
    feed.add(event("a", 100, "10:19:00"), event("a", 1000, "10:09:00"))  # both windows are closed
    second = run_until_read(bench.apply("window", options, feed.stream()), tmp_path / "checkpoint")
    closed = sorted((clock(row.window_start), clock(row.window_end), row.id, row.total) for row in second.rows)
    assert closed == [("09:50", "10:00", "a", 2), ("10:00", "10:10", "a", 4), ("10:00", "10:10", "b", 5)]
    assert second.late_rows == 2
    static = bench.apply("window", options, feed.table())
    assert sum(row.total for row in static.collect()) == 1141  # over history nothing is late


def test_sessions_end_after_the_gap(bench: Bench, make_feed: MakeFeed, tmp_path: Path) -> None:
    options = {"time": "at", "gap": "5 minutes", "group_by": ["id"], "aggregates": {"clicks": "count(*)"}}
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"), event("a", 1, "10:08:00"))
    feed.add(event("a", 1, "10:04:00"))  # joins the two
    feed.add(event("a", 1, "11:00:00"))
    stream = bench.apply("watermark", {"time": "at", "delay": "10 minutes"}, feed.stream())
    outcome = run_until_read(bench.apply("window", options, stream), tmp_path / "checkpoint")
    assert [(clock(row.window_start), clock(row.window_end), row.clicks) for row in outcome.rows] == [
        ("10:00", "10:13", 3)
    ]
    static = bench.apply("window", options, feed.table()).collect()
    assert sorted((clock(row.window_start), row.clicks) for row in static) == [("10:00", 3), ("11:00", 1)]


def test_duplicates_are_known_after_a_restart_and_forgotten_after_their_time(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    options = {"keys": ["id"], "time": "at", "within": "10 minutes"}
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"), event("a", 2, "10:01:00"), event("b", 3, "10:02:00"))
    first = run_until_read(bench.apply("deduplicate", options, feed.stream()), tmp_path / "checkpoint")
    assert sorted((row.id) for row in first.rows) == ["a", "b"]
    feed.add(event("b", 4, "10:03:00"), event("c", 5, "10:30:00"))
    feed.add(event("e", 8, "10:30:30"))
    feed.add(event("a", 6, "10:31:00"), event("d", 7, "10:05:00"))  # a is forgotten by now, d is late
    second = run_until_read(bench.apply("deduplicate", options, feed.stream()), tmp_path / "checkpoint")
    assert sorted((row.id, row.n) for row in second.rows) == [("a", 6), ("c", 5), ("e", 8)]
    assert second.late_rows == 1
    assert bench.apply("deduplicate", options, feed.table()).count() == 5


def test_streams_meet_within_their_time_and_lone_rows_come_out_in_the_end(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    orders, payments = make_feed("orders"), make_feed("payments", "order_id STRING, sum INT, at TIMESTAMP")
    options = {
        "with": "payments",
        "on": {"id": "order_id"},
        "type": "left",
        "columns": ["sum"],
        "time": "at",
        "within": "10 minutes",
        "order": "after",
        "watermark": "5 minutes",
    }

    def payment(order: str, amount: int, clock: str) -> dict[str, Any]:
        return {"order_id": order, "sum": amount, "at": f"2024-01-01T{clock}Z"}

    orders.add(event("paid", 1, "10:00:00"), event("late", 2, "10:00:00"), event("unpaid", 3, "10:00:00"))
    payments.add(payment("paid", 10, "10:05:00"), payment("late", 20, "10:11:00"), payment("none", 30, "10:00:00"))
    orders.add(event("next", 4, "11:00:00"))
    payments.add(payment("next", 40, "11:00:00"), payment("early", 50, "11:01:00"))
    bench.tables["payments"] = payments.stream()
    outcome = run_until_read(bench.apply("join", options, orders.stream()), tmp_path / "checkpoint")
    expected = [("late", None), ("next", 40), ("paid", 10), ("unpaid", None)]
    assert sorted((row.id, row.sum) for row in outcome.rows) == expected
    bench.tables["payments"] = payments.table()
    static = bench.apply("join", options, orders.table())
    assert sorted((row.id, row.sum) for row in static.collect()) == expected


def test_two_streams_without_bounds_are_refused(bench: Bench, make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"))
    bench.tables["others"] = feed.stream()
    with pytest.raises(FatalFailure, match="`others` is a stream too"):
        bench.apply("join", {"with": "others", "on": "id", "prefix": "o_"}, feed.stream())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("window", {"time": "at", "size": "1 minute", "aggregates": {"n": "count(*)"}}),
        ("deduplicate", {"keys": ["id"], "time": "at"}),
    ],
)
def test_a_stream_without_a_watermark_is_refused(
    bench: Bench, make_feed: MakeFeed, kind: str, options: dict[str, Any]
) -> None:
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"))
    with pytest.raises(FatalFailure, match="`at` has no watermark"):
        bench.apply(kind, options, feed.stream())
    again = bench.apply("watermark", {"time": "at", "delay": "1 minute"}, feed.stream())
    with pytest.raises(FatalFailure, match="a watermark of 60 seconds already"):
        bench.apply("watermark", {"time": "at", "delay": "2 minutes"}, again)


def test_windows_that_show_each_change_come_again_with_every_batch_that_changes_them(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    options = {
        "time": "at",
        "size": "10 minutes",
        "aggregates": {"total": "sum(n)"},
        "watermark": "10 minutes",
        "emit": "updates",
    }
    feed = make_feed()
    feed.add(event("a", 1, "10:05:00"), event("a", 10, "10:15:00"))
    feed.add(event("a", 2, "10:06:00"))
    feed.add(event("a", 100, "10:40:00"))  # the watermark passes the others, which changes nothing in them
    feed.add(event("a", 200, "10:41:00"))
    feed.add(event("a", 1000, "10:07:00"), event("a", 400, "10:42:00"))  # late, and not
    outcome = run_until_read(bench.apply("window", options, feed.stream()), tmp_path / "checkpoint", "update")
    batches = [sorted((clock(row.window_start), row.total) for row in batch) for batch in outcome.batches]
    assert [batch for batch in batches if batch] == [
        [("10:00", 1), ("10:10", 10)],
        [("10:00", 3)],
        [("10:40", 100)],
        [("10:40", 300)],
        [("10:40", 700)],
    ]
    assert outcome.late_rows == 1


VISITS = """
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Visits(StatefulProcessor):
        def __init__(self, start: int = 0) -> None:
            self.start = start

        def init(self, handle) -> None:
            self.count = handle.getValueState("count", "n BIGINT")

        def handleInputRows(self, key, rows, timer_values):
            count = self.count.get()[0] if self.count.exists() else self.start
            count += sum(1 for _ in rows)
            self.count.update((count,))
            yield Row(id=key[0], visits=count)

        def close(self) -> None:
            pass
"""


def test_a_class_of_ones_own_keeps_its_state_over_a_restart(bench: Bench, make_feed: MakeFeed, tmp_path: Path) -> None:
    (bench.base_dir / "tracking.py").write_text(dedent(VISITS))
    options = {
        "stateful": "tracking:Visits",
        "group_by": ["id"],
        "schema": "id STRING, visits BIGINT",
        "emit": "update",
        "arguments": {"start": 100},
    }
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"), event("a", 1, "10:00:01"), event("b", 1, "10:00:00"))
    first = run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint", "update")
    assert pairs(first.rows) == [("a", 102), ("b", 101)]
    feed.add(event("a", 1, "10:00:02"))
    second = run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint", "update")
    assert pairs(second.rows) == [("a", 103)]
    assert pairs(bench.apply("stateful", options, feed.table()).collect()) == [("a", 103), ("b", 101)]


SILENCE = """
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Silence(StatefulProcessor):
        "One row when nothing came for ten minutes of event time."

        def init(self, handle) -> None:
            self.handle = handle
            self.count = handle.getValueState("count", "n BIGINT")

        def handleInputRows(self, key, rows, timer_values):
            moments = [row.at for row in rows]
            count = (self.count.get()[0] if self.count.exists() else 0) + len(moments)
            self.count.update((count,))
            for timer in list(self.handle.listTimers()):
                self.handle.deleteTimer(timer)
            self.handle.registerTimer(int(max(moments).timestamp() * 1000) + 600_000)
            return iter(())

        def handleExpiredTimer(self, key, timer_values, expired):
            yield Row(id=key[0], visits=self.count.get()[0])
            self.count.clear()

        def close(self) -> None:
            pass
"""


def test_timers_go_by_the_watermark(bench: Bench, make_feed: MakeFeed, tmp_path: Path) -> None:
    (bench.base_dir / "silence.py").write_text(dedent(SILENCE))
    options = {
        "stateful": "silence:Silence",
        "group_by": ["id"],
        "schema": "id STRING, visits BIGINT",
        "timers": "event",
        "time": "at",
        "watermark": "1 minute",
    }
    feed = make_feed()
    feed.add(event("a", 1, "10:00:00"), event("b", 1, "10:00:00"))
    feed.add(event("a", 1, "10:08:00"))
    first = run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint")
    assert first.rows == []
    feed.add(event("c", 1, "10:14:00"))  # the watermark is 10:13: b has been silent for long enough, a has not
    second = run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint")
    assert pairs(second.rows) == [("b", 1)]
    feed.add(event("c", 1, "10:40:00"))
    third = run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint")
    assert pairs(third.rows) == [("a", 2)]


def test_an_exception_in_the_class_names_the_key_and_the_line_and_says_what_to_do(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    broken = dedent(VISITS).replace("count += sum", "count += 1 // (key[0] != 'bad'); count += sum")
    (bench.base_dir / "tracking.py").write_text(broken)
    options = {"stateful": "tracking:Visits", "group_by": ["id"], "schema": "id STRING, visits BIGINT"}
    feed = make_feed()
    feed.add(event("good", 1, "10:00:00"), event("bad", 1, "10:00:00"))
    with pytest.raises(StreamingQueryException) as raised:
        run_until_read(bench.apply("stateful", options, feed.stream()), tmp_path / "checkpoint")
    failure = judge(str(raised.value))
    assert not failure.fatal  # the next try may go better: the class may have asked somebody who was away
    assert "step 1 stateful: `tracking:Visits` raised ZeroDivisionError" in failure.message
    assert "tracking.py, line" in failure.message
    assert "for the key 'bad'" in failure.message
    assert "reject such rows in a step before" in failure.message


def pairs(rows: Sequence[Any]) -> list[tuple[str, int]]:
    return sorted((row.id, row.visits) for row in rows)


def test_a_sql_query_that_groups_keeps_its_state_in_the_stream(
    bench: Bench, make_feed: MakeFeed, tmp_path: Path
) -> None:
    query = "SELECT window(at, '10 minutes').start AS start, count(*) AS n FROM input GROUP BY window(at, '10 minutes')"
    feed = make_feed()
    feed.add(event("a", 1, "10:05:00"))
    feed.add(event("a", 3, "10:04:00"))
    feed.add(event("a", 10, "10:30:00"))
    stream = bench.apply("watermark", {"time": "at", "delay": "10 minutes"}, feed.stream())
    outcome = run_until_read(bench.apply("sql", {"sql": query}, stream), tmp_path / "checkpoint")
    assert [(clock(row.start), row.n) for row in outcome.rows] == [("10:00", 2)]
