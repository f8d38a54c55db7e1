"""The last part of a plan: rows become what is written, all of it in one pass over them.

A good row becomes a record for each topic, and a row for files; one that is marked as rejected becomes a dead letter.
Where every sink can take part, this is the end of the streaming plan, and a batch has nothing left to do but to write.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import Sink
from ottla.pipelines.connectors.transactional import StagedSink, TransactionalSink, transactional
from ottla.pipelines.frames import MARK, MARK_TYPE, ORIGIN, TOPIC_ROW, without_origin
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.runner.dead_letters import letter_text
from ottla.spark.flat import inside
from ottla.spark.headers import never_null
from ottla.spark.writing.beside import ROW
from ottla.spark.writing.made_later import UNMADE


@dataclass(frozen=True)
class Finishing:
    query: QueryPlan
    topics: Sequence[TransactionalSink]
    files: Sequence[tuple[str, StagedSink]]
    base_dir: Path
    codec: str
    """Of Parquet files, where the sink names none."""

    @property
    def has_letters(self) -> bool:
        """Whether rows that were rejected are among those that are finished (`frames.MARK`)."""
        return self.query.dead_letter is not None

    def finish(self, frame: DataFrame) -> DataFrame:
        """In the shape of `frames.TOPIC_ROW`, with the columns `row` and `row__...` if there are files to write.

        With the column `unmade` if rows can be rejected: the task that writes makes dead letters of it. All other
        columns of such a row are null, but for the headers.
        """
        rows = without_origin(frame)
        is_good = sf.col(MARK).isNull() if self.has_letters else sf.lit(True)
        unmade = [sf.when(~is_good, _letter(frame)).alias(UNMADE)] if self.has_letters else []
        whole = {name: sf.col(f"`{name}`") for name in rows.columns} if self.files else {}
        records = [sink.columns(rows, self.base_dir) for sink in self.topics] or [_no_record()]
        if len(records) == 1:
            return frame.select(*_typed(records[0], whole, is_good), *unmade)
        none = {name: sf.lit(None).cast(rows.schema[name].dataType) for name in whole}
        made = [
            sf.struct(*_typed(record, none if number else whole, has_row=not number))
            for number, record in enumerate(records)
        ]
        nothing = sf.struct(*_typed(_no_record(), none, has_row=False))
        return frame.select(sf.inline(sf.when(is_good, sf.array(*made)).otherwise(sf.array(nothing))), *unmade)


def finishing(
    query: QueryPlan, sinks: Sequence[tuple[str, Sink]], row: StructType, base_dir: Path, codec: str
) -> Finishing | None:
    """How the rows (of the type `row`) end; None if a sink of the query has to be given a frame of its own."""
    topics = [sink for _, sink in transactional(sinks)]
    files = [(name, sink) for name, sink in sinks if isinstance(sink, StagedSink) and sink.takes_part(row, codec)]
    in_plan = all(sink.target().in_plan for sink in topics)
    if not query.writes_topics or not in_plan or len(topics) + len(files) < len(sinks):
        return None
    return Finishing(query, topics, files, base_dir, codec)


def _letter(frame: DataFrame) -> Column:
    assert ORIGIN in frame.columns, "what is marked has an origin, if only a null"
    return letter_text(sf.col(ORIGIN), {field.name: sf.col(MARK)[field.name] for field in MARK_TYPE.fields})


def _typed(
    record: Sequence[Column], row: Mapping[str, Column], is_good: Column | None = None, *, has_row: bool = True
) -> list[Column]:
    """As `frames.TOPIC_ROW` has them, and the row as `beside.ROW` says; where `is_good` is false, null."""
    typed = {field.name: column.cast(field.dataType) for field, column in zip(TOPIC_ROW.fields, record, strict=False)}
    more = record[len(typed) :]  # of a sink that is alone, and knows what its writer wants
    if row:
        typed[ROW] = sf.lit(has_row)
        typed |= {inside(ROW, name): column for name, column in row.items()}
    if is_good is not None:
        typed = {name: sf.when(is_good, column) for name, column in typed.items()}
    typed["headers"] = never_null(typed["headers"])
    return [*(column.alias(name) for name, column in typed.items()), *more]


def _no_record() -> list[Column]:
    return [sf.lit(None) for _ in TOPIC_ROW.fields]
