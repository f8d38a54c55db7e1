"""The last part of a plan: rows become what is written, all of it in one pass over them.

A good row becomes a record for each topic, and a row for files; one that is marked as rejected becomes a dead letter.
Where every sink can take part, this is the end of the streaming plan, and a batch has nothing left to do but to write.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from ottla.pipelines.connectors.base import Sink
from ottla.pipelines.connectors.transactional import StagedSink, TransactionalSink, transactional
from ottla.pipelines.frames import MARK, MARK_TYPE, ORIGIN, TOPIC_ROW, without_origin
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.runner.dead_letters import letter_columns
from ottla.spark.headers import never_null
from ottla.spark.writing.beside import ROW


@dataclass(frozen=True)
class Finishing:
    query: QueryPlan
    topics: Sequence[TransactionalSink]
    files: Sequence[tuple[str, StagedSink]]
    base_dir: Path
    codec: str
    """Of Parquet files, where the sink names none."""

    def finish(self, frame: DataFrame) -> DataFrame:
        """In the shape of `frames.TOPIC_ROW`, with the column `row` if there are files to write."""
        rows = without_origin(frame)
        whole = [sf.struct(*(sf.col(f"`{name}`") for name in rows.columns)).alias(ROW)] if self.files else []
        none = [sf.lit(None).cast(rows.schema).alias(ROW)] if self.files else []
        records = [_typed(sink.columns(rows, self.base_dir)) for sink in self.topics] or [_no_record()]
        good = [sf.struct(*record, *(none if number else whole)) for number, record in enumerate(records)]
        if MARK not in frame.columns:
            return frame.select(sf.inline(sf.array(*good))) if len(good) > 1 else frame.select(*records[0], *whole)
        is_good = sf.col(MARK).isNull()
        letter = sf.struct(*_typed(self._letter(frame)), *none)
        if len(good) == 1:
            return frame.select(sf.when(is_good, good[0]).otherwise(letter).alias("made")).select("made.*")
        return frame.select(sf.inline(sf.when(is_good, sf.array(*good)).otherwise(sf.array(letter))))

    def _letter(self, frame: DataFrame) -> list[Column]:
        assert self.query.dead_letter is not None, "rows are marked for it"
        assert ORIGIN in frame.columns, "what is marked has an origin, if only a null"
        why = {field.name: sf.col(MARK)[field.name] for field in MARK_TYPE.fields}
        return letter_columns(sf.col(ORIGIN), why, self.query.pipeline, self.query.dead_letter)


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


def _typed(columns: Sequence[Column]) -> list[Column]:
    """As `frames.TOPIC_ROW` has them."""
    typed = {field.name: column.cast(field.dataType) for field, column in zip(TOPIC_ROW.fields, columns, strict=False)}
    more = columns[len(typed) :]  # of a sink that is alone, and knows what its writer wants
    typed["headers"] = never_null(typed["headers"])
    return [*(column.alias(name) for name, column in typed.items()), *more]


def _no_record() -> list[Column]:
    return _typed([sf.lit(None) for _ in TOPIC_ROW.fields])
