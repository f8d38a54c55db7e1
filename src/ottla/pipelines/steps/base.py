"""What a step is. A step is chosen by its `KIND`, the key of its entry (`- sql: SELECT ...` is kind `sql`).

Steps before the last stateful one run inside the streaming plan; those after it run on each batch as a static frame,
so a step must not ask which of the two it is in unless Spark itself differs there (`context.streaming`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, kw_only=True)
class StepContext:
    spark: SparkSession
    pipeline: str
    label: str
    """How messages and dead letters name the step: its `name`, or its number and kind (`2 sql`)."""
    base_dir: Path
    streaming: bool
    tables: Mapping[str, DataFrame]
    """Every frame that has a name here: sources, tables, and steps with `as`."""
    reject: Callable[[DataFrame], None] | None
    """Takes rows that failed, in the schema `frames.REJECTED`. None: there is no dead-letter topic, so failing rows
    must stop the query with a message that names the row."""


class Step(Protocol):
    KIND: ClassVar[str]
    Options: ClassVar[type[Any]]
    STATEFUL: ClassVar[bool]

    def __init__(self, options: Any) -> None: ...

    def problems(self) -> list[str]: ...

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame: ...
