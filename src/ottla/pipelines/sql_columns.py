"""Which columns each frame of a pipeline has, as far as the file alone tells, and who asks for others."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from sqlglot import exp

from ottla.pipelines import ddl
from ottla.pipelines.frames import ORIGIN
from ottla.pipelines.parts import PhaseParts, SourcePart, StepPart
from ottla.pipelines.spec import Phase
from ottla.pipelines.sql_texts import options_of, texts_of_source
from ottla.pipelines.sql_trees import Unclear, columns_of, expression_tree, query_tree
from ottla.pipelines.steps.base import INPUT
from ottla.pipelines.structs import Problem, at

Columns = list[str] | None
"""None: nobody can tell without Spark."""

_SAME_COLUMNS = frozenset({"filter", "expect", "watermark", "deduplicate", "cast"})
# Clauses whose columns are the frame's: a query made of these alone is understood, any other is left to Spark.
_PLAIN = frozenset({"expressions", "from_", "from", "where", "order", "limit", "offset", "distinct", "kind", "group"})


def column_problems(phase: Phase, parts: PhaseParts, place: str) -> list[Problem]:
    return _Frames(phase, parts, place).problems


class _Frames:
    def __init__(self, phase: Phase, parts: PhaseParts, place: str) -> None:
        self.problems: list[Problem] = []
        self._named: dict[str, Columns] = {}
        for entries, found in ((phase.sources, parts.sources), (phase.tables, parts.tables)):
            for name, entry in entries.items():
                self._named[name] = _columns_read(entry, found[name]) if name in found else None
        current = self._named.get(next(iter(phase.sources), ""))
        for step in parts.steps:
            given = self._named.get(step.input) if step.input is not None else current
            where = at(place, f"steps[{step.number - 1}]")
            current = self._after(step, phase.steps[step.number - 1], given, where)
            if step.result is not None:
                self._named[step.result] = current

    def _after(self, step: StepPart, entry: Mapping[str, Any], given: Columns, place: str) -> Columns:
        options, where = options_of(step.kind, dict(entry), place)
        if step.kind == "sql":
            return self._after_query(str(options["sql"]), given, f"{where}.sql")
        if given is None:
            return _without_input(step.kind, options)
        if step.kind in _SAME_COLUMNS:
            self._check_same(step.kind, options, given, where)
            return given
        if step.kind == "map":
            for name, text in options["columns"].items():
                self._expression(text, given, f"{where}.columns.{name}")
            new = list(options["columns"])
            return new if options.get("only") else [*given, *(name for name in new if name not in given)]
        if step.kind in ("select", "drop"):
            self._names(options[step.kind], given, f"{where}.{step.kind}")
            chosen = {name.lower() for name in options[step.kind]}
            rest = [name for name in given if name.lower() not in chosen]
            return list(options["select"]) if step.kind == "select" else rest
        if step.kind == "rename":
            self._names(options["columns"], given, f"{where}.columns")
            return [options["columns"].get(name, name) for name in given]
        if step.kind == "window":
            for name, text in options["aggregates"].items():
                self._expression(text, given, f"{where}.aggregates.{name}")
            self._names([options["time"]], given, f"{where}.time")
            self._names(options.get("group_by", []), given, f"{where}.group_by")
        if step.kind == "python" and options.get("adds") and not options.get("schema"):
            added = _names_of(options["adds"])
            return None if added is None else [*given, *(name for name in added if name not in given)]
        return _without_input(step.kind, options)

    def _check_same(self, kind: str, options: Mapping[str, Any], given: list[str], where: str) -> None:
        if kind in ("filter", "expect"):
            option = "filter" if kind == "filter" else "rule"
            self._expression(options[option], given, f"{where}.{option}")
        elif kind == "cast":
            self._names(options["columns"], given, f"{where}.columns")
        elif kind == "deduplicate":
            self._names(options.get("keys", []), given, f"{where}.keys")
        elif kind == "watermark":
            self._names([options["time"]], given, f"{where}.time")

    def _after_query(self, text: str, given: Columns, place: str) -> Columns:
        """Of a query over one frame, without anything that could bring in other names."""
        try:
            tree = query_tree(text)
        except Unclear:
            return None
        frame = _only_frame(tree)
        if frame is None or not isinstance(tree, exp.Select):
            return None
        known = given if frame.name.lower() == INPUT else self._frame(frame.name)
        if known is None:
            return None
        aliases = [column.alias for column in tree.expressions if column.alias]
        allowed = [*known, *aliases, frame.name, frame.alias_or_name]
        self._missing(columns_of(tree), allowed, known, place)
        return _projected(tree, known)

    def _frame(self, name: str) -> Columns:
        return next((found for known, found in self._named.items() if known.lower() == name.lower()), None)

    def _expression(self, text: str, given: list[str], place: str) -> None:
        try:
            tree = expression_tree(text)
        except Unclear:
            return
        if tree.find(exp.Query) is None:
            self._missing(columns_of(tree), given, given, place)

    def _names(self, names: Iterable[str], given: list[str], place: str) -> None:
        self._missing(set(names), given, given, place)

    def _missing(self, names: set[str], allowed: Iterable[str], known: list[str], place: str) -> None:
        there = {name.lower() for name in allowed} | {ORIGIN}
        for name in sorted(names):
            if name.lower() not in there:
                close = difflib.get_close_matches(name, known, n=1)
                meant = f": did you mean `{close[0]}`?" if close else f"; there are {', '.join(known)}"
                self.problems.append((place, f"there is no column `{name}`{meant}"))


def _columns_read(entry: Mapping[str, Any], part: SourcePart) -> Columns:
    schema = next(texts_of_source(dict(entry), ""), None)
    if schema is None:
        return None
    names = _names_of(schema.text)
    if names is None:
        return None
    return [*names, *(part.reading.keep if part.reading is not None else ())]


def _names_of(schema: str) -> Columns:
    try:
        return ddl.column_names(schema)
    except (ddl.NotUnderstood, ddl.UnknownType):
        return None


def _without_input(kind: str, options: Mapping[str, Any]) -> Columns:
    """The columns of a result that do not depend on those of the input."""
    if kind in ("python", "stateful") and options.get("schema"):
        return _names_of(options["schema"])
    if kind == "select":
        return list(options["select"])
    if kind == "map" and options.get("only"):
        return list(options["columns"])
    if kind == "window":
        return ["window_start", "window_end", *options.get("group_by", []), *options["aggregates"]]
    return None


def _only_frame(tree: exp.Expr) -> exp.Table | None:
    if not isinstance(tree, exp.Select) or any(value for name, value in tree.args.items() if name not in _PLAIN):
        return None
    tables = list(tree.find_all(exp.Table))
    nested = len(list(tree.find_all(exp.Query))) > 1 or tree.find(exp.Lateral, exp.UDTF) is not None
    if nested or len(tables) != 1 or tables[0].db or not isinstance(tables[0].this, exp.Identifier):
        return None
    more = any(tables[0].args.get(name) for name in ("joins", "laterals", "pivots", "sample"))
    return None if more else tables[0]


def _projected(tree: exp.Select, known: list[str]) -> Columns:
    made: list[str] = []
    for column in tree.expressions:
        if isinstance(column, exp.Star) and not column.args.get("except_") and not column.args.get("except"):
            made += known
        elif isinstance(column, exp.Alias) and column.alias:
            made.append(column.alias)
        elif isinstance(column, exp.Column) and not isinstance(column.this, exp.Star) and not column.args.get("table"):
            made.append(column.name)
        else:
            return None
    return made
