"""`format("ottla")`: the data source that Spark finds through `pyspark_ottla`."""

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ottla.spark import plain_json
from ottla.spark.errors import InvalidOption
from ottla.spark.headers import HEADERS
from ottla.spark.reading import flow_option, kept_option
from ottla.spark.reading.options import wants_headers
from ottla.spark.task_planned import planned_in_task, without_it
from ottla.spark.worker_heap import freeze_modules

ROW = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
"""A record as Spark's Kafka connector shows it."""


class OttlaDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> StructType:
        headers = [StructField("headers", HEADERS)] if wants_headers(self.options) else []
        more = [*headers, *plain_json.plain_column(self.options)]
        return StructType([*ROW.fields, *more]) if more else ROW

    def _check(self, schema: StructType) -> None:
        if schema.fieldNames() != self.schema().fieldNames():
            raise InvalidOption(
                f"rows of records always have the columns {', '.join(self.schema().fieldNames())}: take .schema(...) "
                "out, and read the value with from_json or from_format"
            )

    # Each is imported when it is used: a worker that reads has no need for what writes.

    def reader(self, schema: StructType) -> DataSourceReader:
        from ottla.spark.reading.reader import BatchReader  # noqa: PLC0415

        self._check(schema)
        if kept_option.wants_it(self.options):
            from ottla.spark.reading.kept_table import KeptTableReader  # noqa: PLC0415

            return KeptTableReader(kept_option.without_it(self.options))
        return planned_in_task(BatchReader(without_it(self.options)), self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from ottla.spark.reading.reader import StreamReader  # noqa: PLC0415

        self._check(schema)
        options, flow = flow_option.taken(self.options)
        if flow.copy_to is not None:
            from ottla.spark.copying.reader import CopyingReader  # noqa: PLC0415

            return CopyingReader(options, flow, flow.copy_to)
        return StreamReader(options, flow)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from ottla.spark.writing.writer import BatchWriter  # noqa: PLC0415

        return BatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        from ottla.spark.writing.writer import StreamWriter  # noqa: PLC0415

        freeze_modules()  # this process plans every batch of the stream
        return StreamWriter(self.options, schema)
