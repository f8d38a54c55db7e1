"""Expressions that can fail for a row (a division by zero, an overflow, a cast), tried for each row alone.

Spark's SQL stops a query at the first of them. Here the row is found: `attempt` gives a struct with the value, or null
where there was none to be had. Spark has the expression for it, `TryEval`, and no function; so it is made through the
JVM, as in `sql`. What cannot fail is left as it is, because whatever is tried is one more thing to compute twice.
"""

from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaObject
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from ottla.spark.formats.spec import evaluated_once

VALUE = "value"

# Expressions that give a value for all that they can be given, if what is in them does.
_SAFE = frozenset(
    {
        "Alias", "And", "ArrayContains", "AttributeReference", "Between", "BRound", "CaseWhen", "Ceil", "Coalesce",
        "CommonExpressionDef", "CommonExpressionRef", "Concat", "ConcatWs", "Contains", "CreateArray",
        "CreateNamedStruct", "DayOfMonth", "EndsWith", "EqualNullSafe", "EqualTo", "Floor", "GetStructField",
        "GreaterThan", "GreaterThanOrEqual", "Greatest", "Hour", "If", "In", "InSet", "InitCap", "IsNaN", "IsNotNull",
        "IsNull", "Least", "Left", "Length", "LessThan", "LessThanOrEqual", "Like", "Literal", "Lower", "Minute",
        "Month", "Murmur3Hash", "NaNvl", "Not", "NullIf", "NullIfResult", "Nvl", "Or", "Right", "RLike", "Second",
        "Sha2", "Md5", "Size", "StartsWith", "StringLocate", "StringReplace", "StringTrim", "StringTrimLeft",
        "StringTrimRight", "StructsToJson", "Substring", "TryEval", "Upper", "With", "Year",
    }
)  # fmt: skip
_ARITHMETIC = frozenset({"Add", "Subtract", "Multiply", "UnaryMinus", "Abs"})
_NEVER_OVERFLOW = ("double", "float")


def can_fail(frame: DataFrame, text: str) -> bool:
    """Whether the expression may fail for a row. An expression that Spark refuses cannot: it is not run at all."""
    return _can_fail(_ExpressionKey(frame, text, frame.schema.json()))


class _ExpressionKey:
    """An expression and the columns it sees: the same question has the same answer in every batch."""

    def __init__(self, frame: DataFrame, text: str, schema: str) -> None:
        self.frame: DataFrame | None = frame
        self.text = text
        self._key = (text, schema)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ExpressionKey) and self._key == other._key


@lru_cache(maxsize=256)
def _can_fail(question: _ExpressionKey) -> bool:
    frame, question.frame = question.frame, None  # the answer is kept, the frame is not
    assert frame is not None
    try:
        plan = frame.select(sf.expr(question.text))._jdf.queryExecution().analyzed()
        return plan.nodeName() != "Project" or _is_risky(plan.projectList().apply(0))
    except (AnalysisException, ParseException):
        return False


def _is_risky(expression: JavaObject) -> bool:
    kind = str(expression.getClass().getSimpleName())
    if kind == "Cast":
        risky = not _cast_is_safe(expression)
    elif kind in _ARITHMETIC:
        risky = str(expression.dataType().typeName()) not in _NEVER_OVERFLOW
    else:
        risky = kind not in _SAFE
    if risky:
        return True
    children = expression.children()
    return any(_is_risky(children.apply(index)) for index in range(children.size()))


def _cast_is_safe(cast: JavaObject) -> bool:
    kinds = (str(cast.child().dataType().typeName()), str(cast.dataType().typeName()))
    widening = {"byte": 1, "short": 2, "integer": 3, "long": 4, "float": 5, "double": 6}
    if kinds[1] == "string" or kinds[0] == kinds[1] == "boolean":
        return True
    return kinds[0] in widening and kinds[1] in widening and widening[kinds[0]] <= widening[kinds[1]]


def attempt(frame: DataFrame, text: str) -> Column:
    """A struct with the expression's `value`, or null for rows that it fails for."""
    jvm: Any = frame.sparkSession._jvm
    bridge = jvm.org.apache.spark.sql.classic.ExpressionUtils
    # What two expressions have in common Spark computes once, before both and outside of what is tried; but it does not
    # look for that behind a condition.
    tried: Any = evaluated_once(sf.struct(sf.expr(text).alias(VALUE)))
    wrapped = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(bridge.expression(tried._jc))
    column: Column = type(tried)(bridge.column(wrapped))
    return column


def why_not(text: str) -> str:
    """What a dead letter says."""
    return f"`{text}` cannot be computed for this row: a division by zero, an overflow or a value not of its type"
