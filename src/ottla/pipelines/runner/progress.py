"""How a query gets on: what Spark reports after each batch, what the sinks counted, and how far behind it is."""

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from ottla.client.offsets import LATEST, FoundOffset, list_offsets
from ottla.client.settings import client_settings
from ottla.model.names import TopicPartition
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import InvalidOption
from ottla.spark.reading.offsets import read_checkpointed

LAG_SECONDS = 1.0
STATE_PARTS = {"update": "allUpdatesTimeMs", "remove": "allRemovalsTimeMs", "commit": "commitTimeMs"}
"""What can be done to state, and what Spark calls the time that it took."""


@dataclass
class StateProgress:
    """What stateful steps keep, and what has been done to it."""

    rows: int = 0
    bytes: int = 0
    by_operator: dict[str, int] = field(default_factory=dict)
    """Rows, by Spark's name of what keeps them."""
    parts: dict[str, float] = field(default_factory=dict)
    """Seconds of all tasks of the last batch."""
    updates: int = 0
    removals: int = 0
    late_rows: int = 0

    def add(self, operators: Sequence[Mapping[str, Any]]) -> None:
        def total(name: str) -> int:
            return sum(int(each.get(name) or 0) for each in operators)

        self.rows, self.bytes = total("numRowsTotal"), total("memoryUsedBytes")
        rows = Counter[str]()
        for each in operators:
            rows[str(each.get("operatorName", "state"))] += int(each.get("numRowsTotal") or 0)
        self.by_operator = dict(rows)
        self.parts = {part: total(name) / 1000 for part, name in STATE_PARTS.items()} if operators else {}
        self.updates += total("numRowsUpdated")
        self.removals += total("numRowsRemoved")
        self.late_rows += total("numRowsDroppedByWatermark")


@dataclass
class QueryProgress:
    """Since the query was started in this run. Rows per second and batch times are those of the last batch.

    Others read it meanwhile, so a dictionary that has been given out is replaced and never changed."""

    batch: int | None = None
    input_rows: int = 0
    input_rows_per_second: float = 0.0
    """How fast they came: since the batch before it began. 0 for the first."""
    rows_per_second: float = 0.0
    batch_started: float | None = None
    batch_seconds: float = 0.0
    batch_parts: dict[str, float] = field(default_factory=dict)
    """Seconds of that time, by what Spark calls its parts."""
    busy_seconds: float = 0.0
    busy_parts: dict[str, float] = field(default_factory=dict)
    """The same of all batches together."""
    state: StateProgress = field(default_factory=StateProgress)
    watermark: str | None = None
    event_time_max: float | None = None
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    """Where the topics have been read up to."""
    run: str = ""

    def knows(self, report: Mapping[str, Any]) -> bool:
        run = str(report.get("runId", ""))
        return run == self.run and self.batch is not None and int(report["batchId"]) <= self.batch

    def add(self, report: Mapping[str, Any], scans: int = 1) -> None:
        """Take in what Spark reports about one batch. A batch that is known already changes nothing."""
        if self.knows(report):
            return
        self.run = str(report.get("runId", ""))
        rows = int(report.get("numInputRows") or 0) // scans  # Spark counts a record as often as the plan reads it
        self.batch = int(report["batchId"])
        self.input_rows += rows
        self.input_rows_per_second = float(report.get("inputRowsPerSecond") or 0.0) / scans
        self.batch_started = seconds_of(report.get("timestamp"))
        parts = {name: int(took_ms) / 1000 for name, took_ms in (report.get("durationMs") or {}).items()}
        self.batch_seconds = parts.pop("triggerExecution", 0.0)
        self.batch_parts = parts
        self.busy_seconds += self.batch_seconds
        self.busy_parts = {
            name: self.busy_parts.get(name, 0.0) + parts.get(name, 0.0) for name in self.busy_parts | parts
        }
        self.rows_per_second = rows / self.batch_seconds if self.batch_seconds else 0.0
        self.state.add(report.get("stateOperators") or [])
        times = report.get("eventTime") or {}
        self.watermark = times.get("watermark", self.watermark)
        newest = seconds_of(times.get("max"))
        if newest is not None:
            self.event_time_max = max(newest, self.event_time_max or newest)
        ends = [_positions(source.get("endOffset")) for source in report.get("sources") or []]
        self.positions = {partition: at for each in (self.positions, *ends) for partition, at in each.items()}


def seconds_of(moment: str | None) -> float | None:
    """Since 1970, of a moment as Spark writes it. None where there is none: 1970 itself is how a watermark begins."""
    return (datetime.fromisoformat(moment).timestamp() or None) if moment else None


def _positions(offset: Any) -> dict[TopicPartition, int]:
    text = offset if isinstance(offset, str) else json.dumps(offset)
    try:
        return read_checkpointed(text)
    except (InvalidOption, ValueError, AttributeError):
        return {}  # the offset of another kind of source


class ProgressBook:
    """Progress of queries by name. Spark is asked for it: to be told, by a listener, costs Python a call back from the
    JVM for each report, and the report twice over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_name: dict[str, QueryProgress] = {}

    def of(self, name: str) -> QueryProgress:
        with self._lock:
            return self._by_name.setdefault(name, QueryProgress())

    def look(self, stream: StreamingQuery, scans: int) -> int:
        """Take in what a query has reported since the last look, and say how many batches that were. `scans`: so often
        it reads each of its sources."""
        reports = stream._jsq.recentProgress()
        unseen: list[dict[str, Any]] = []
        for index in reversed(range(len(reports))):
            report = json.loads(reports[index].json())
            if self.of(report["name"]).knows(report):
                break
            unseen.append(report)
        for report in reversed(unseen):
            self.add(report, scans)
        return len(unseen)

    def add(self, report: Mapping[str, Any], scans: int = 1) -> None:
        if report.get("name"):
            progress = self.of(report["name"])
            with self._lock:
                progress.add(report, scans)


class LagMeter:
    """How many records lie ahead of the queries. Asks the brokers at most once a second, and never waits for them."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._settings = client_settings(client)
        self._asked = 0.0
        self._answer: Future[dict[TopicPartition, int]] | None = None
        self._ends: dict[TopicPartition, int] = {}

    def lag(self, positions: Mapping[TopicPartition, int]) -> int | None:
        """By the last answer; None where there is none yet."""
        if self._answer is not None and self._answer.done():
            if self._answer.exception() is None:
                self._ends.update(self._answer.result())
            self._answer = None
        if positions and self._answer is None and time.monotonic() - self._asked >= LAG_SECONDS:
            self._answer = loop.submit(self._ask(positions))
            self._asked = time.monotonic()
        known = [max(0, self._ends[partition] - at) for partition, at in positions.items() if partition in self._ends]
        return sum(known) if known else None

    async def _ask(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        cluster = shared_cluster(self._settings)
        found = await list_offsets(cluster, dict.fromkeys(positions, LATEST), committed=True)
        return {
            partition: end.offset
            for partition, end in found.items()
            if isinstance(end, FoundOffset) and end.offset is not None
        }
