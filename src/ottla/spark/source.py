"""`format("ottla")`: the data source that Spark finds through `pyspark_ottla`."""

from pyspark.sql.datasource import DataSource


class OttlaDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ottla"
