"""The state of the pipeline under test: a payment gets its place among those of its account, and their sum so far."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType


class Counting(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        kept = StructType([StructField("place", LongType()), StructField("total", LongType())])
        self._kept = handle.getValueState("kept", kept)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N803
        place, total = self._kept.get() or (0, 0)
        for row in rows:
            place, total = place + 1, total + row.amount
            yield Row(id=row.id, account=key[0], amount=row.amount, place=place, total=total)
        self._kept.update((place, total))

    def close(self) -> None:
        """Nothing is held open."""
