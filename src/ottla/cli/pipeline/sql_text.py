"""What can be said about a SQL text without Spark: which topics it names, and how to quote them. Pure.

Topic names have dots and dashes, SQL names do not, and backticks inside double quotes are a command to every shell. So
the name of a topic may stand plain after FROM and JOIN; it is quoted here.
"""

import difflib
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

READING = ("select", "with", "from", "values", "describe", "desc", "explain", "(")
"""How a statement that changes nothing begins."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* | /\*.*?\*/ )
    | (?P<text> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
    | (?P<quoted> `(?:[^`]|``)*` )
    | (?P<word> [A-Za-z0-9_](?:[A-Za-z0-9_]|[.-](?=[A-Za-z0-9_`]))* )
    | (?P<sign> \S )
    """,
    re.VERBOSE | re.DOTALL,
)
_COUNT_ALL = re.compile(r"\(\s*\*\s*\)")
# After FROM, these begin something else than a table's name.
_NOT_A_TABLE = frozenset({"lateral", "only", "select", "stream", "table", "values"})


class TableName(NamedTuple):
    name: str
    start: int
    end: int
    depth: int
    """How many parentheses are open: `extract(year FROM day)` is not about a table."""
    quoted: bool


def tables(sql: str) -> Iterator[TableName]:
    """What stands where a table's name would: after FROM and JOIN, and after commas that follow such a name."""
    depth, expecting, listing, before = 0, False, False, ""
    for token in _TOKEN.finditer(sql):
        kind, text = token.lastgroup, token[0]
        if kind == "comment":
            continue
        word = text.lower() if kind == "word" else ""
        if expecting and kind in ("word", "quoted") and word not in _NOT_A_TABLE:
            if not _called(sql, token.end()):
                name = text[1:-1].replace("``", "`") if kind == "quoted" else text
                yield TableName(name, token.start(), token.end(), depth, kind == "quoted")
            expecting, listing = False, True
        elif word in ("from", "join") and before != "distinct":
            expecting, listing = True, False
        elif text == "," and listing:
            expecting = True
        elif word in ("where", "group", "order", "having", "limit", "on", "using", "union", "window", "select"):
            expecting, listing = False, False
        else:
            expecting = False
        depth += {"(": 1, ")": -1}.get(text, 0) if kind == "sign" else 0
        if text == ")":
            listing = False
        before = word


def _called(sql: str, position: int) -> bool:
    """`range(10)` is a function, `parquet.`/path`` a file."""
    return sql[position:].lstrip().startswith("(") or sql[position : position + 2] == ".`"


def may_show(sql: str, column: str) -> bool:
    """Whether the result may depend on a column of a table, by its name or as one of all (`*`)."""
    begins = sql.lstrip(" \t\n(")[:6].lower()
    if not begins.startswith(("select", "with")):
        return True  # `FROM t`, `TABLE t`, DESCRIBE, EXPLAIN: these have all columns
    return column in sql.lower() or "*" in _COUNT_ALL.sub("", sql)


def quote_topics(sql: str, topics: Collection[str]) -> str:
    """Put backticks around names of topics that SQL would not read as one name."""
    parts, position = [], 0
    for table in tables(sql):
        if table.quoted or table.name not in topics or _PLAIN_NAME.fullmatch(table.name):
            continue
        parts += [sql[position : table.start], f"`{table.name}`"]
        position = table.end
    return "".join([*parts, sql[position:]])


def named_topics(sql: str, topics: Collection[str]) -> list[str]:
    """The topics that a text can mean. SQL does not mind upper and lower case, so two topics may share a name."""
    wanted = {table.name.lower() for table in tables(sql)}
    return sorted(topic for topic in topics if topic.lower() in wanted)


def unknown_table(sql: str, topics: Collection[str]) -> str | None:
    """A name that is surely no topic: plainly a table of the outermost query, and not one that the text defines."""
    words = {token[0].lower() for token in _TOKEN.finditer(sql) if token.lastgroup == "word"}
    if "with" in words:
        return None
    known = {topic.lower() for topic in topics}
    for table in tables(sql):
        if table.depth == 0 and table.name.lower() not in known:
            return table.name
    return None


def no_such_topic(name: str, topics: Collection[str]) -> str:
    near = difflib.get_close_matches(name, topics, n=3, cutoff=0.6)
    if near:
        return f"there is no topic `{name}`: did you mean {' or '.join(f'`{topic}`' for topic in near)}?"
    if not topics:
        return f"there is no topic `{name}`: the cluster has none; make one with `ottla topics --create --topic {name}`"
    shown = ", ".join(sorted(topics)[:10]) + (", ..." if len(topics) > 10 else "")
    return f"there is no topic `{name}`; there is: {shown}"


def only_reads(sql: str) -> bool:
    first = next((token[0].lower() for token in _TOKEN.finditer(sql) if token.lastgroup != "comment"), "")
    return first in READING
