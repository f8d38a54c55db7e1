"""Streams whose batches a test lays down one by one: a file is a batch."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession


@dataclass
class Feed:
    """Rows in files, in the order in which they were added."""

    spark: SparkSession
    folder: Path
    schema: str
    count: int = 0

    def add(self, *rows: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.count:04}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1_000_000 + self.count, 1_000_000 + self.count))
        self.count += 1

    def stream(self) -> DataFrame:
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).json(str(self.folder))

    def table(self) -> DataFrame:
        return self.spark.read.schema(self.schema).json(str(self.folder))


@dataclass
class Outcome:
    batches: list[list[Row]] = field(default_factory=list)
    late_rows: int = 0

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]


def run_until_read(frame: DataFrame, checkpoint: Path, mode: str = "append") -> Outcome:
    """Run the query from its checkpoint over all that is there, as the runner does with `once`."""
    outcome = Outcome()
    query = (
        frame.writeStream.outputMode(mode)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .foreachBatch(lambda batch, _: outcome.batches.append(batch.collect()))
        .start()
    )
    try:
        assert query.awaitTermination(240), "the query did not end"
        states = [state for report in query.recentProgress for state in report["stateOperators"]]
        outcome.late_rows = sum(int(state["numRowsDroppedByWatermark"]) for state in states)
    finally:
        query.stop()
    return outcome
