"""What is kept of what Spark reports about batches."""

from typing import Any

from ottla.pipelines.runner.progress import QueryProgress


def report(batch: int, **changes: Any) -> dict[str, Any]:
    """As Spark writes one, without what nobody reads."""
    return {
        "runId": "r1", "name": "orders", "timestamp": "2026-11-17T12:00:00.500Z", "batchId": batch, "numInputRows": 40,
        "inputRowsPerSecond": 20.0, "processedRowsPerSecond": 80.0,
        "durationMs": {"triggerExecution": 500, "addBatch": 400, "walCommit": 50},
        "eventTime": {"watermark": "2026-11-17T11:00:00.000Z", "max": "2026-11-17T11:10:00.000Z"},
        "stateOperators": [
            {"operatorName": "dedupe", "numRowsTotal": 10, "numRowsUpdated": 4, "numRowsRemoved": 1,
             "allUpdatesTimeMs": 100, "allRemovalsTimeMs": 20, "commitTimeMs": 60, "memoryUsedBytes": 1000,
             "numRowsDroppedByWatermark": 2},
            {"operatorName": "dedupe", "numRowsTotal": 5, "memoryUsedBytes": 500},
            {"operatorName": "stateStoreSave", "numRowsTotal": 7, "memoryUsedBytes": 700},
        ],
        "sources": [], **changes,
    }  # fmt: skip


def test_gauges_are_of_the_last_batch_and_counters_of_all() -> None:
    progress = QueryProgress()
    progress.add(report(0))
    assert (progress.input_rows_per_second, progress.rows_per_second, progress.batch_seconds) == (20.0, 80.0, 0.5)
    assert progress.batch_started == 1_794_916_800.5
    assert progress.state.by_operator == {"dedupe": 15, "stateStoreSave": 7}
    assert (progress.state.rows, progress.state.bytes) == (22, 2200)
    assert progress.state.parts == {"update": 0.1, "remove": 0.02, "commit": 0.06}
    later = {"triggerExecution": 1000, "addBatch": 700, "queryPlanning": 30}
    progress.add(report(1, durationMs=later, inputRowsPerSecond=None, eventTime={"max": "2026-11-17T11:05:00.000Z"}))
    assert (progress.batch_seconds, progress.busy_seconds) == (1.0, 1.5)
    assert progress.batch_parts == {"addBatch": 0.7, "queryPlanning": 0.03}
    assert progress.busy_parts == {"addBatch": 1.1, "walCommit": 0.05, "queryPlanning": 0.03}
    assert progress.input_rows_per_second == 0.0, "Spark leaves out what is no number"
    assert (progress.state.updates, progress.state.removals, progress.state.late_rows) == (8, 2, 4)
    assert progress.watermark == "2026-11-17T11:00:00.000Z", "a batch that says nothing of it changes nothing"
    assert progress.event_time_max == 1_794_913_800.0, "the newest of all"


def test_a_plan_that_reads_a_source_twice_counts_its_rows_once() -> None:
    progress = QueryProgress()
    progress.add(report(0), scans=2)
    assert (progress.input_rows, progress.input_rows_per_second, progress.rows_per_second) == (20, 10.0, 40.0)


def test_a_batch_that_is_known_changes_nothing_and_one_of_another_run_does() -> None:
    progress = QueryProgress()
    progress.add(report(3))
    progress.add(report(3))
    assert (progress.input_rows, progress.state.updates) == (40, 4)
    progress.add(report(3, runId="r2"))
    assert (progress.input_rows, progress.state.updates) == (80, 8)


def test_a_query_without_state_and_event_times_has_none() -> None:
    progress = QueryProgress()
    progress.add(report(0, stateOperators=[], eventTime={}))
    assert (progress.state.parts, progress.watermark, progress.event_time_max) == ({}, None, None)
