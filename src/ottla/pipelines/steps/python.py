"""`python`: rows through a function of yours.

    - python: enrich:add_country
    - {python: enrich:add_country, adds: "country STRING"}

`module:function` is looked for beside the pipeline file, then among what is installed. What the function gets is said
by the annotation of its first parameter:

- none, or `dict`: one row. It returns a dict (the row), None (leave it out) or a list of dicts (several rows).
- `pyarrow.RecordBatch` or `pyarrow.Table`: many rows at once, for speed; it returns the same.
- `pandas.DataFrame`: the same with pandas.
- `pyspark.sql.DataFrame`: the whole frame, on the driver; it returns a frame. `uses` names other frames that it gets
  as a dict in its second parameter. Say `stateful: true` if it groups, joins streams or removes duplicates.

`adds` says which columns a row has besides those it came with (or which it replaces), and a returned dict is laid over
the row; `schema` says all columns that it has. Functions can say it themselves: `ottla.pipelines.steps.declare`.

A row that the function raises for is rejected, alone, with the exception and the line that raised it. A function of
batches that raises is called again with halves of the batch until the rows are found. Batches carry the column
`__origin` if rows can be rejected: keep it, and later steps can still say where a row came from.
"""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import HIDDEN, MARK, ORIGIN
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.declare import ADDS_ATTRIBUTE, SCHEMA_ATTRIBUTE
from ottla.pipelines.steps.expressions import parsed_schema
from ottla.pipelines.steps.python_rows import Task
from ottla.pipelines.steps.rejecting import FAILURE, ROW, split_failed
from ottla.pipelines.steps.user_code import Shipped, load, reference_problems, takes_rows
from ottla.spark.flat import map_spread


class PythonOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    python: str
    """module:function"""
    adds: str | None = None
    """Columns besides those of the input, as DDL."""
    schema: str | None = None
    """All columns of the result, as DDL."""
    uses: list[str] = []
    """Frames that a function of DataFrames gets in its second parameter."""
    stateful: bool = False
    """A function of DataFrames whose result for a row depends on other rows."""


class PythonStep:
    KIND: ClassVar[str] = "python"
    Options: ClassVar[type[PythonOptions]] = PythonOptions

    def __init__(self, options: PythonOptions) -> None:
        self._options = options
        self.STATEFUL = options.stateful

    def problems(self) -> list[str]:
        problems = reference_problems(self._options.python, "function")
        if self._options.adds is not None and self._options.schema is not None:
            problems.append("`adds` and `schema` exclude each other: `schema` names all columns already")
        return problems

    def row_by_row(self, base_dir: Path) -> bool:
        return not self.STATEFUL and not self._options.uses and takes_rows(self._options.python, base_dir)

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        function = load(self._options.python, context.base_dir, context.label)
        if not callable(function):
            raise FatalFailure(f"step {context.label}: `{self._options.python}` is not a function")
        kind = takes(function, context.label)
        if kind == "frame":
            return self._frame(function, frame, context)
        if self._options.uses or self._options.stateful:
            raise FatalFailure(
                f"step {context.label}: `uses` and `stateful` are for functions whose first parameter is annotated as "
                "pyspark.sql.DataFrame"
            )
        return self._rows(function, kind, frame, context)

    def _frame(self, function: Callable[..., Any], frame: DataFrame, context: StepContext) -> DataFrame:
        missing = [name for name in self._options.uses if name not in context.tables]
        if missing:
            known = ", ".join(context.tables)
            raise FatalFailure(f"step {context.label}: `uses` names `{missing[0]}`; there are {known}")
        others = [{name: context.tables[name] for name in self._options.uses}] if self._options.uses else []
        result = function(frame, *others)
        if not isinstance(result, DataFrame):
            raise FatalFailure(f"step {context.label}: the function returned {type(result).__name__}, not a DataFrame")
        return result

    def _rows(self, function: Callable[..., Any], kind: str, frame: DataFrame, context: StepContext) -> DataFrame:
        columns, merge = self._columns(function, frame, context)
        carried = [StructField(name, frame.schema[name].dataType) for name in (ORIGIN, MARK) if name in frame.columns]
        texts = [StructField(FAILURE, StringType()), StructField(ROW, StringType())]
        output = StructType([*columns.fields, *carried, *texts])
        task = Task(
            function=Shipped.pack(function, context.label),
            kind=kind,
            columns=_arrow(columns),
            output=_arrow(output),
            merge=merge,
        )
        return split_failed(map_spread(frame, task, output, (ORIGIN, MARK)), context)

    def _columns(self, function: Any, frame: DataFrame, context: StepContext) -> tuple[StructType, bool]:
        """The step's columns, and whether a row that comes back is laid over the one that went in."""
        said = self._options.schema or self._options.adds
        whole = self._options.schema if said else getattr(function, SCHEMA_ATTRIBUTE, None)
        added = self._options.adds if said else getattr(function, ADDS_ATTRIBUTE, None)
        if whole is not None:
            return _nullable(parsed_schema(whole, context)), False
        fields = {field.name: field for field in frame.schema.fields if field.name not in HIDDEN}
        for field in parsed_schema(added, context).fields if added else []:
            fields[field.name] = field
        return _nullable(StructType(list(fields.values()))), True


def takes(function: Callable[..., Any], label: str) -> str:
    """What the function wants to be given."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError as unknown:
        raise FatalFailure(f"step {label}: an annotation of the function cannot be read: {unknown}") from unknown
    parameters = list(signature.parameters.values())
    if not parameters:
        raise FatalFailure(f"step {label}: the function takes no row: write `def function(row)`")
    wanted = parameters[0].annotation
    origin = getattr(wanted, "__origin__", wanted)
    if wanted in {inspect.Parameter.empty, Any} or origin in {dict, Mapping}:
        return "rows"
    if isinstance(wanted, type):
        for kind, library, name in _TAKES:
            if wanted.__name__ == name and wanted.__module__.partition(".")[0] == library:
                return kind
    raise FatalFailure(
        f"step {label}: the function's first parameter is annotated as {wanted!r}: it can be dict, "
        "pyarrow.RecordBatch, pyarrow.Table, pandas.DataFrame or pyspark.sql.DataFrame"
    )


# By name: importing pandas takes a second, and few need it.
_TAKES = (
    ("frame", "pyspark", "DataFrame"),
    ("arrow", "pyarrow", "RecordBatch"),
    ("table", "pyarrow", "Table"),
    ("pandas", "pandas", "DataFrame"),
)


def _arrow(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")


def _nullable(schema: StructType) -> StructType:
    """Rejected rows travel beside the good ones with null in every column."""
    return StructType([StructField(field.name, field.dataType) for field in schema.fields])
