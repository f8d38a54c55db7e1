"""A row as a line of text, for files and objects that are made of them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, StringType

from ottla.pipelines.errors import ConnectorProblem


def line_column(frame: DataFrame, file_format: str, writer_options: dict[str, str]) -> Column:
    """A row as one line of text."""
    if file_format == "json":
        return sql.to_json(sql.struct("*"), writer_options)
    if file_format == "csv":
        return sql.to_csv(sql.struct("*"), {key: value for key, value in writer_options.items() if key != "header"})
    return sql.col(text_column(frame))


def text_column(frame: DataFrame) -> str:
    """Text has one column: the only one there is, or `value`."""
    names = frame.columns if len(frame.columns) == 1 else [name for name in frame.columns if name == "value"]
    if len(names) != 1 or not isinstance(frame.schema[names[0]].dataType, StringType | BinaryType):
        raise ConnectorProblem(
            f"format text writes one column of strings; this frame has {', '.join(frame.columns)}. "
            "Select one column as `value`, or choose json, csv or parquet"
        )
    return names[0]
