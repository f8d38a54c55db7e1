"""State of one's own: a user who clicks often enough rises to silver, then to gold."""

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType


class Loyalty(StatefulProcessor):
    """One row whenever a user reaches a level."""

    def __init__(self, silver: int, gold: int) -> None:
        self._levels = {silver: "silver", gold: "gold"}

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._clicks = handle.getValueState("clicks", StructType([StructField("n", LongType())]))

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        state = self._clicks.get()
        count = state[0] if state else 0
        for _ in rows:
            count += 1
            if count in self._levels:
                yield Row(user=key[0], clicks=count, level=self._levels[count])
        self._clicks.update((count,))

    def close(self) -> None:
        """Nothing is held open."""
