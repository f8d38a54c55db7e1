"""The status of all pipelines of a driver as one document: for HTTP, for files, for the screen."""

import time
from typing import Any

from ottla.pipelines.plan import graph_of
from ottla.pipelines.runner.progress import seconds_of
from ottla.pipelines.runner.supervisor import SupervisedPipeline, SupervisedQuery, Supervisor


def status_document(supervisor: Supervisor) -> dict[str, Any]:
    return {
        "time": round(time.time(), 3),
        "pipelines": [pipeline_status(supervisor, pipeline) for pipeline in supervisor.pipelines],
    }


def pipeline_status(supervisor: Supervisor, pipeline: SupervisedPipeline) -> dict[str, Any]:
    return {
        "pipeline": pipeline.name,
        "version": pipeline.deployment.version,
        "state": pipeline.state.value,
        "queries": [_query_status(supervisor, pipeline, query) for query in pipeline.queries],
    }


def _query_status(supervisor: Supervisor, pipeline: SupervisedPipeline, query: SupervisedQuery) -> dict[str, Any]:
    progress = supervisor.progress(query)
    return {
        "query": query.plan.name,
        "state": query.state.value,
        "group": query.plan.group,
        "batch": progress.batch,
        "batches": query.batches,
        "input_rows": progress.input_rows,
        "input_rows_per_second": round(progress.input_rows_per_second, 1),
        "rows_per_second": round(progress.rows_per_second, 1),
        "batch_started": progress.batch_started,
        "batch_seconds": round(progress.batch_seconds, 3),
        "batch_parts": dict(progress.batch_parts),
        "busy_seconds": round(progress.busy_seconds, 3),
        "busy_parts": {name: round(seconds, 3) for name, seconds in progress.busy_parts.items()},
        "lag": pipeline.lag_meters[query.plan.source_cluster].lag(progress.positions),
        "sink_rows": query.rows,
        "dead_letters": query.dead_letters,
        "unread_in_tables": query.unread_in_tables,
        "late_rows": progress.state.late_rows,
        "state_rows": progress.state.rows,
        "state_bytes": progress.state.bytes,
        "state_operators": dict(progress.state.by_operator),
        "state_parts": dict(progress.state.parts),
        "state_updates": progress.state.updates,
        "state_removals": progress.state.removals,
        "watermark": progress.watermark,
        "watermark_seconds": seconds_of(progress.watermark),
        "event_time_max_seconds": progress.event_time_max,
        "restarts": query.restarts,
        "error": query.last_error,
        "graph": graph_of(query.plan),
        "dead_letter_topic": query.plan.dead_letter,
    }
