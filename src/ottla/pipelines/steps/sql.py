"""`sql`: a query over the frames that have names here.

    - sql: SELECT *, amount * 1.2 AS gross FROM orders WHERE amount > 0

`input` is the result of the step before; sources, tables and steps with `as` go by their names. A query that groups,
counts or otherwise looks at many rows keeps its state in the stream, as `window` does; in a stream such a query needs a
`watermark` step before it. All others are applied batch by batch.

Where each row of the result comes from one row of the input, the row's origin goes with it although the query does not
name it. Which queries are so is asked of Spark's own parser: another parser would know another SQL (the grammar changes
with every release), and rewriting a query as text changes what it means sooner or later. The origin is added to the
parsed query, and if Spark's analysis refuses the result, the query runs as it was written.
"""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from ottla.pipelines.frames import HIDDEN, MARK, ORIGIN, without_origin
from ottla.pipelines.steps.base import StepContext
from ottla.pipelines.steps.expressions import checked_frame
from ottla.pipelines.steps.sql_text import goes_row_by_row, looks_at_many_rows

# Views are named for the moment of an analysis only; two analyses in one session must not see each other's.
_views = threading.Lock()


class SqlOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sql: str
    """The query."""


class SqlStep:
    KIND: ClassVar[str] = "sql"
    Options: ClassVar[type[SqlOptions]] = SqlOptions

    def __init__(self, options: SqlOptions) -> None:
        self._query = options.sql
        self.STATEFUL = looks_at_many_rows(options.sql)

    def problems(self) -> list[str]:
        return [] if self._query.strip() else ["the query is empty: write `SELECT ... FROM input`"]

    def row_by_row(self, base_dir: Path) -> bool:
        return goes_row_by_row(self._query)

    def apply(self, frame: DataFrame, context: StepContext) -> DataFrame:
        def run() -> DataFrame:
            if context.marking and MARK in frame.columns:
                marked = run_query(self._query, frame, context.tables, marked=True)
                if MARK in marked.columns:
                    return marked
                good = context.set_aside(frame)
                tables = {name: good if table is frame else table for name, table in context.tables.items()}
                return run_query(self._query, good, tables)
            return run_query(self._query, frame, context.tables)

        return checked_frame(run, context)


def run_query(query: str, frame: DataFrame, tables: Mapping[str, DataFrame], *, marked: bool = False) -> DataFrame:
    """The query's result, in the session of `frame`: inside a batch that is not the session the tables came from.

    `marked`: rows that are marked as rejected go through it unseen. If the result has no marks, that was not possible.
    """
    session = frame.sparkSession
    many_rows = looks_at_many_rows(query)
    with _views:
        names = [name for name in tables if name.lower() in query.lower()]
        for name in names:
            table = _in_session(session, tables[name])
            # To DISTINCT and GROUP BY ALL an origin would be one more column that tells rows apart.
            visible = without_origin(table) if many_rows else table
            visible.createOrReplaceTempView(f"`{name}`")
        try:
            if marked:
                return _with_marks(query, session)
            carried = not many_rows and any(ORIGIN in table.columns for table in tables.values())
            return _with_origin(query, session) if carried else session.sql(query)
        finally:
            for name in names:
                session.catalog.dropTempView(name)


def _with_origin(query: str, session: SparkSession) -> DataFrame:
    plain = session.sql(query)
    if ORIGIN in plain.columns:
        return _first_origin(plain)
    try:
        parsed = _java(session).sessionState().sqlParser().parsePlan(query)
        widened = _frame(session, _widen(session, parsed))
    except (_ManyRows, AnalysisException):
        return plain
    return widened if widened.columns == [*plain.columns, ORIGIN] else plain


def _with_marks(query: str, session: SparkSession) -> DataFrame:
    plain = session.sql(query)
    try:
        parsed = _java(session).sessionState().sqlParser().parsePlan(query)
        widened = _frame(session, _widen_marked(session, parsed))
    except (_ManyRows, AnalysisException):
        return plain.drop(MARK)
    seen = [name for name in plain.columns if name not in HIDDEN]
    whole = [name for name in widened.columns if name not in HIDDEN] == seen
    return widened if whole and sorted(set(widened.columns) & HIDDEN) == sorted(HIDDEN) else plain.drop(MARK)


def _first_origin(frame: DataFrame) -> DataFrame:
    """A join of two streams with `*` has two origins; the first stream's stays."""
    if frame.columns.count(ORIGIN) == 1:
        return frame
    kept = [index for index, name in enumerate(frame.columns) if name != ORIGIN]
    first = frame.columns.index(ORIGIN)
    renamed = frame.toDF(*(f"_{index}" for index in range(len(frame.columns))))
    chosen = renamed.select(*(f"_{index}" for index in [*kept, first]))
    return chosen.toDF(*(frame.columns[index] for index in kept), ORIGIN)


# Spark's parsed queries, through the JVM. Everything that depends on Spark's inner classes is below.


class _ManyRows(Exception):
    """A row of the result is made of several, or nobody can tell."""


_SAME_ROWS = frozenset({"Filter", "Sort", "GlobalLimit", "LocalLimit", "SubqueryAlias", "Generate", "PipeOperator"})


def _widen(session: SparkSession, plan: JavaObject) -> JavaObject:
    """The parsed query with the origin as one more column of each SELECT on the way down to the input."""
    kind = plan.nodeName()
    if kind in {"UnresolvedRelation", "UnresolvedSubqueryColumnAliases"}:
        return plan
    children = _items(plan.children())
    if kind == "Project":
        below = _widen(session, children[0])
        columns = _items(plan.projectList())
        if not any("UnresolvedStar" in str(column.getClass().getName()) for column in columns):
            columns.append(_origin_of(session, children[0]))
        return _jvm(session).org.apache.spark.sql.catalyst.plans.logical.Project(_seq(session, columns), below)
    if kind in _SAME_ROWS:
        return plan.withNewChildren(_seq(session, [_widen(session, children[0])]))
    if kind == "Join":
        return plan.withNewChildren(_seq(session, [_widen(session, children[0]), children[1]]))
    if kind == "Union":
        return plan.withNewChildren(_seq(session, [_widen(session, child) for child in children]))
    if kind == "UnresolvedWith":
        return _widen_with(session, plan)
    raise _ManyRows


def _widen_marked(session: SparkSession, plan: JavaObject) -> JavaObject:
    """The parsed query with the hidden columns in its SELECT, and a WHERE that marked rows always pass."""
    kind = plan.nodeName()
    if kind == "UnresolvedRelation":
        return plan
    children = _items(plan.children())
    expressions = _jvm(session).org.apache.spark.sql.catalyst.expressions
    if kind == "Project":
        below = _widen_marked(session, children[0])
        columns = _items(plan.projectList())
        if not any("UnresolvedStar" in str(column.getClass().getName()) for column in columns):
            columns += [_attribute(session, name) for name in sorted(HIDDEN)]
        return _jvm(session).org.apache.spark.sql.catalyst.plans.logical.Project(_seq(session, columns), below)
    if kind == "Filter":
        below = _widen_marked(session, children[0])
        condition = expressions.Or(expressions.IsNotNull(_attribute(session, MARK)), plan.condition())
        return _jvm(session).org.apache.spark.sql.catalyst.plans.logical.Filter(condition, below)
    if kind == "SubqueryAlias":
        return plan.withNewChildren(_seq(session, [_widen_marked(session, children[0])]))
    raise _ManyRows


def _attribute(session: SparkSession, name: str) -> JavaObject:
    parts = _seq(session, [name])
    return _jvm(session).org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute(parts)


def _widen_with(session: SparkSession, plan: JavaObject) -> JavaObject:
    jvm = _jvm(session)
    named = [
        jvm.scala.Tuple3(entry._1(), _widen(session, entry._2()), entry._3()) for entry in _items(plan.cteRelations())
    ]
    body = _widen(session, plan.child())
    logical = jvm.org.apache.spark.sql.catalyst.plans.logical
    return logical.UnresolvedWith(body, _seq(session, named), plan.allowRecursion())


def _origin_of(session: SparkSession, plan: JavaObject) -> JavaObject:
    """The origin by the name of the first relation, so that a join of two streams is not ambiguous."""
    while plan.nodeName() not in {"SubqueryAlias", "UnresolvedRelation"}:
        children = _items(plan.children())
        if not children:
            raise _ManyRows
        plan = children[0]
    name = plan.alias() if plan.nodeName() == "SubqueryAlias" else _items(plan.multipartIdentifier())[-1]
    parts = _seq(session, [name, ORIGIN])
    return _jvm(session).org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute(parts)


def _in_session(session: SparkSession, table: DataFrame) -> DataFrame:
    if table.sparkSession is session:
        return table
    return _frame(session, table._jdf.queryExecution().analyzed())


def _frame(session: SparkSession, plan: JavaObject) -> DataFrame:
    rows = _jvm(session).org.apache.spark.sql.classic.Dataset.ofRows(_java(session), plan)
    return DataFrame(rows, session)


def _items(sequence: JavaObject) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


def _seq(session: SparkSession, items: list[Any]) -> JavaObject:
    return _jvm(session).PythonUtils.toSeq(items)


def _jvm(session: SparkSession) -> Any:
    return session._jvm


def _java(session: SparkSession) -> Any:
    return session._jsparkSession
