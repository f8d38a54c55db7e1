"""Makes the archive of Spark's classes: `python -m ottla.spark.archive_making`, once for each Java and each PySpark.

A session does a little of everything that pipelines and `ottla sql` do, so that Java has loaded what they need, and
Java writes the archive when it ends. All of it runs at the lowest priority: who waits for the processor comes first.
"""

import contextlib
import datetime
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

from ottla.config.java import NoJava, find_java
from ottla.spark.class_archive import QUIET, SWITCH, archive_place
from ottla.spark.home import home_without_zip
from ottla.spark.session import JAVA_OPTIONS_VARIABLE, build_session

if TYPE_CHECKING:
    import pyarrow as pa

MASTER = "local[2]"
LOWEST_PRIORITY = 19
ROWS = 20
ROW = "id STRING, at TIMESTAMP, amount DOUBLE, tags ARRAY<STRING>"
JVM_END_SECONDS = 600.0


def main() -> int:
    os.nice(LOWEST_PRIORITY)
    try:
        archive = archive_of_this_machine()
    except NoJava:
        return 0  # whoever wants a session will be told
    if archive is None:
        return 0
    with _alone(archive) as alone:
        if alone and not archive.is_file():
            make(archive)
    return 0


def archive_of_this_machine() -> Path | None:
    """Where sessions look for it."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # as a session has it
    home = home_without_zip(MASTER, {}, os.environ)
    return archive_place(find_java(os.environ, wanted_by="Spark"), os.environ, home)


def make(archive: Path) -> None:
    """Written beside its place and moved there whole: a session may start at any time."""
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=archive.parent) as folder:
        unfinished = Path(folder, archive.name)
        os.environ[SWITCH] = "off"
        os.environ[JAVA_OPTIONS_VARIABLE] = f'{QUIET} -XX:ArchiveClassesAtExit="{unfinished}"'
        spark = build_session("archive of classes", MASTER, short_lived=True)
        try:
            do_a_little_of_everything(spark, Path(folder))
        finally:  # also what was loaded until something went wrong is good to have
            spark.stop()
            _end_jvm()
            if unfinished.is_file():
                unfinished.rename(archive)


@contextlib.contextmanager
def _alone(archive: Path) -> Iterator[bool]:
    """False while another process makes this archive."""
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _end_jvm() -> None:
    """It writes the archive now, and ends when its standard input is closed."""
    gateway = SparkContext._gateway
    assert gateway is not None
    process: Any = gateway.proc
    gateway.shutdown()
    process.stdin.close()
    process.wait(JVM_END_SECONDS)


def do_a_little_of_everything(spark: SparkSession, folder: Path) -> None:
    rows = spark.createDataFrame(
        [(str(number), '{"amount": 1.5}') for number in range(ROWS)], "id STRING, value STRING"
    )
    rows.write.parquet(str(folder / "parquet"))
    rows.write.json(str(folder / "json"))
    rows.createOrReplaceTempView("records")
    spark.read.schema("id STRING, value STRING").json(str(folder / "json")).persist().count()
    spark.sql(
        "SELECT r.id, count(*) AS n, sum(from_json(r.value, 'amount DOUBLE').amount) AS total FROM records r "
        "JOIN records o ON r.id = o.id WHERE r.id LIKE '1%' GROUP BY r.id ORDER BY total DESC LIMIT 5"
    ).collect()
    _stream(spark, folder / "rows", _row_by_row(spark, folder))
    _stream(spark, folder / "windows", _by_window(spark))


def _stream(spark: SparkSession, folder: Path, frame: DataFrame) -> None:
    def write(batch: DataFrame, number: int) -> None:
        batch.coalesce(1).mapInArrow(_as_they_are, batch.schema).collect()
        batch.write.mode("append").parquet(str(folder / "out"))

    writer = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def _records(spark: SparkSession) -> DataFrame:
    spark.dataSource.register(_Records)
    return spark.readStream.format(_Records.name()).load().withColumn("value", sf.to_json(sf.struct("*")))


def _row_by_row(spark: SparkSession, folder: Path) -> DataFrame:
    """Read, checked, joined, without duplicates, through Python: as a pipeline of rows is."""
    table = spark.read.parquet(str(folder / "parquet")).select("id", sf.get_json_object("value", "$.amount").alias("x"))
    return (
        _records(spark)
        .select("id", "at", sf.from_json("value", ROW).alias("row"), sf.explode_outer("tags").alias("tag"))
        .withColumn("bad", sf.when(sf.col("row.amount") < 0, sf.lit("does not hold")))
        .filter(sf.col("bad").isNull() | sf.col("id").rlike("^9"))
        .withWatermark("at", "1 minute")
        .dropDuplicatesWithinWatermark(["id"])
        .join(sf.broadcast(table), "id", "left")
        .select("id", "at", sf.to_json("row").alias("value"), sf.upper("tag").alias("tag"), "x")
        .mapInArrow(_as_they_are, "id STRING, at TIMESTAMP, value STRING, tag STRING, x STRING")
    )


def _by_window(spark: SparkSession) -> DataFrame:
    counted = _records(spark).withWatermark("at", "1 second").groupBy(sf.window("at", "1 second"), "id")
    return counted.agg(sf.count("*").alias("n"), sf.sum("amount").alias("total"), sf.max("at").alias("last"))


def _as_they_are(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    yield from batches


class _RecordsReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"offset": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        return {"offset": ROWS}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition((start["offset"], end["offset"]))]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa  # noqa: PLC0415

        zero = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
        numbers = range(*partition.value)
        times = pa.array([zero + datetime.timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC"))
        columns: list[pa.Array[Any]] = [pa.array([str(n) for n in numbers]), times]
        columns += [pa.array([float(n) for n in numbers]), pa.array([["a", "b"] for _ in numbers])]
        yield pa.RecordBatch.from_arrays(columns, ["id", "at", "amount", "tags"])


class _Records(DataSource):
    """A stream that needs no broker, read by Python as topics are."""

    @classmethod
    def name(cls) -> str:
        return "records_for_the_archive"

    def schema(self) -> str:
        return ROW

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _RecordsReader()


if __name__ == "__main__":
    sys.exit(main())
