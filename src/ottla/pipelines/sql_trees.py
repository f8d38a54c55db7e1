"""Queries and expressions as trees, by sqlglot: quick, no JVM, and only nearly Spark's grammar.

So it is believed when it understands a text, and never when it does not (docs/decisions/0015-sql-in-lint.md).
"""

import logging
from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

DIALECT = "spark"
# sqlglot logs what it falls back on; here that is a text it does not understand, and so it is treated.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())
logging.getLogger("sqlglot").propagate = False

# Words that are a column's name to the parser, and something else to Spark's functions.
NO_COLUMNS = frozenset(
    {
        "year", "years", "quarter", "month", "months", "week", "weeks", "day", "days", "dayofyear", "hour", "hours",
        "minute", "minutes", "second", "seconds", "millisecond", "milliseconds", "microsecond", "microseconds",
        "current_date", "current_timestamp", "current_time", "current_user", "current_catalog", "current_database",
        "current_schema", "current_timezone", "session_user", "user", "localtimestamp", "now", "all", "value",
    }
)  # fmt: skip


class Unclear(Exception):
    """Not understood: it may be wrong, or Spark may know better. The message is sqlglot's."""


def query_tree(text: str) -> exp.Expr:
    try:
        found = [tree for tree in sqlglot.parse(text, dialect=DIALECT) if tree is not None]
    except (SqlglotError, RecursionError, TypeError, AttributeError, IndexError) as error:
        # The last three are bugs of the parser on texts it does not know; none of them says that the text is wrong.
        raise Unclear(_first_line(error)) from error
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise Unclear("it is not one query")
    return found[0]


def expression_tree(text: str) -> exp.Expr:
    """An expression is what can stand alone between SELECT and the end."""
    tree = query_tree(f"SELECT\n{text}")
    alone = isinstance(tree, exp.Select) and len(tree.expressions) == 1
    if not alone or any(value for name, value in tree.args.items() if name not in ("expressions", "kind")):
        raise Unclear("it is not one expression")
    found: exp.Expr = tree.expressions[0]
    return found


def tables_of(tree: exp.Expr) -> Iterator[str]:
    """The names a query reads from that are no parts of it. Names with a dot, and functions, are left alone."""
    own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not table.db and table.name.lower() not in own:
            yield table.name


def columns_of(tree: exp.Expr) -> set[str]:
    """First words of what an expression reads: columns, or tables and structs that have them."""
    bound = {
        str(parameter.name).lower() for scope in tree.find_all(exp.Lambda) for parameter in scope.expressions
    } | NO_COLUMNS
    found = set()
    for column in tree.find_all(exp.Column):
        if isinstance(column.this, exp.Star):
            continue
        root = next(part for part in (column.args.get(key) for key in ("catalog", "db", "table", "this")) if part)
        if root.name and root.name.lower() not in bound:
            found.add(root.name)
    return found


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
