"""Mistakes in the SQL of a pipeline file: syntax, types, tables and columns that are not there.

A quick parser looks at everything. What it does not understand is shown to Spark's own, whose word is final; where that
cannot be asked, the text is left unchecked and said to be so. Types, tables and columns are judged here, columns only
where the file alone tells all that there are.
"""

import difflib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.pipelines import ddl
from ottla.pipelines.parts import CheckedPipeline, PhaseParts
from ottla.pipelines.spark_grammar import EXPRESSION, QUERY, SCHEMA, CannotAsk, Refuses
from ottla.pipelines.spec import Phase
from ottla.pipelines.sql_columns import column_problems
from ottla.pipelines.sql_texts import SqlText, all_texts
from ottla.pipelines.sql_trees import Unclear, expression_tree, query_tree, tables_of
from ottla.pipelines.steps.base import INPUT
from ottla.pipelines.structs import Problem, at


class SqlFindings(NamedTuple):
    problems: list[Problem]
    unchecked: list[Problem]
    """What nobody could judge, and why."""


def check_sql(checked: CheckedPipeline, refuses: Refuses) -> SqlFindings:
    """`refuses` asks Spark's parser; it may raise CannotAsk."""
    findings = SqlFindings([], [])
    spec = checked.spec
    for number, (phase, parts) in enumerate(zip(spec.all_phases(), checked.phases, strict=True)):
        place = f"phases[{number}]" if spec.phases else ""
        for text in all_texts(phase, parts, place):
            _check(text, refuses, findings)
        findings.problems.extend(_tables(phase, parts, place))
        findings.problems.extend(column_problems(phase, parts, place))
    return findings


def _check(text: SqlText, refuses: Refuses, findings: SqlFindings) -> None:
    try:
        _understand(text)
    except ddl.UnknownType as error:
        findings.problems.append((text.place, str(error)))
    except (Unclear, ddl.NotUnderstood) as unclear:
        try:
            wrong = refuses(text.kind, text.text)
        except CannotAsk as error:
            quick = f" (the quick parser says: {unclear})" if str(unclear) else ""
            findings.unchecked.append((text.place, f"could not be checked{quick}: {error}"))
        else:
            if wrong is not None:
                findings.problems.append((text.place, wrong))


def _understand(text: SqlText) -> None:
    if text.kind == QUERY:
        query_tree(text.text)
    elif text.kind == EXPRESSION:
        expression_tree(text.text)
    elif text.kind == SCHEMA:
        ddl.column_names(text.text)
    else:
        ddl.check_type(text.text)


def _tables(phase: Phase, parts: PhaseParts, place: str) -> Iterator[Problem]:
    """A step sees the sources, the tables and what steps before it made."""
    known = [INPUT, *phase.sources, *phase.tables]
    for step in parts.steps:
        index = step.number - 1
        if step.kind == "sql":
            where = at(place, f"steps[{index}].sql")
            yield from ((where, words) for words in _unknown(str(phase.steps[index]["sql"]), known))
        if step.kind == "join":
            other = phase.steps[index]["join"]["with"]
            if other not in known:
                yield at(place, f"steps[{index}].join.with"), _no_table(other, known)
        if step.result is not None:
            known.append(step.result)


def _unknown(query: str, known: Iterable[str]) -> Iterator[str]:
    names = {name.lower() for name in known}
    try:
        tables = dict.fromkeys(tables_of(query_tree(query)))
    except Unclear:
        return  # what is wrong with it has been said, or Spark must say it
    yield from (_no_table(table, known) for table in tables if table.lower() not in names)


def _no_table(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    others = (
        f"there is: {', '.join(known)} (a table of Spark's catalog goes by its database's name, too: default.{name})"
    )
    meant = f"did you mean `{close[0]}`?" if close else others
    return f"there is no source, table or step before it called `{name}`: {meant}"
