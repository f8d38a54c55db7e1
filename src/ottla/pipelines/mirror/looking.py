"""How far the flows of a mirror are, seen from another process: in records, and in seconds."""

import time
from pathlib import Path
from typing import Any

from ottla.client.cluster import Cluster
from ottla.client.groups import group_offsets
from ottla.client.settings import client_settings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.mirror.flows import deploy_flow, flow_name, is_paused
from ottla.pipelines.mirror.spec import Mirror
from ottla.pipelines.runner.looking import look_at
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.options import parse_read_options


def look_at_flows(mirror: Mirror, path: Path, state_dir: Path) -> list[dict[str, Any]]:
    found = []
    for flow in mirror.flows:
        status = look_at(state_dir, flow_name(mirror, flow))
        try:
            deployment = deploy_flow(mirror, flow, path, state_dir)
            kafka = deployment.kafka(flow.source)
            (query,) = deployment.plan.queries
            cluster = shared_cluster(client_settings(kafka), patient=False)
            records, oldest = lag(cluster, kafka, query.group)
        except OttlaError as error:
            status["lag_error"] = str(error)
            records, oldest = None, None
        seconds = None if oldest is None else max(0.0, time.time() - oldest)
        status |= {"lag_records": records, "lag_seconds": 0.0 if records == 0 else seconds}
        status |= {"flow": flow.name, "paused": is_paused(mirror, flow, state_dir), "standby": flow.is_standby}
        found.append(status)
    return found


def lag(cluster: Cluster, kafka: dict[str, str], group: str) -> tuple[int | None, float | None]:
    """How many offsets lie ahead of the group, and the time of the oldest record among them."""
    committed = {at: found.offset for at, found in loop.run(group_offsets(cluster, group)).items()}
    if not committed:
        return None, None
    ends = loop.run(resolving.latest(cluster, committed, committed=True))
    ahead = {at: (committed[at], end) for at, end in ends.items() if end > committed[at]}
    times = [moment for at, (start, end) in ahead.items() if (moment := _first(kafka, at, start, end)) is not None]
    return sum(end - start for start, end in ahead.values()), min(times, default=None)


def _first(kafka: dict[str, str], at: TopicPartition, start: int, end: int) -> float | None:
    asked = {f"kafka.{name}": value for name, value in kafka.items()} | {
        "subscribe": at.topic,
        "failOnDataLoss": "false",
    }
    options = parse_read_options(asked, streaming=False)
    for batch in read_range(OffsetRange(at, start, end), options):
        if batch.num_rows:
            return float(batch.column("timestamp")[0].as_py().timestamp())
    return None
