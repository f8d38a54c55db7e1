"""A pipeline's own tests: its steps on fixtures, and what came out beside what should have."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from ottla.model.errors import OttlaError
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import without_origin
from ottla.pipelines.plan import QueryPlan
from ottla.pipelines.runner.batches import all_steps, kept_frames, static_chain
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.failures import judge
from ottla.pipelines.runner.fixtures import read_file, source_frame
from ottla.pipelines.spec import Case

Row = dict[str, Any]
SIGNIFICANT_DIGITS = 9
"""Doubles that agree so far are the same: nobody writes 1.7999999999999998 into a fixture."""
_JSON = {"ignoreNullFields": "false", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX"}


@dataclass
class Difference:
    """Of one sink, or of the dead letters."""

    place: str
    columns: list[str]
    missing: list[Row] = field(default_factory=list)
    unexpected: list[Row] = field(default_factory=list)


@dataclass
class Outcome:
    name: str
    rows: int = 0
    dead_letters: list[Row] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    error: str | None = None

    @property
    def passed(self) -> bool:
        return self.error is None and not self.differences


def run_case(case: Case, number: int, deployment: Deployment, spark: SparkSession) -> Outcome:
    outcome = Outcome(case.name or f"test {number}")
    try:
        _run(case, deployment, spark, outcome)
    except (OttlaError, PySparkException) as error:
        outcome.error = deployment.secrets.hide(judge(f"{type(error).__name__}: {error}").message)
    return outcome


def _run(case: Case, deployment: Deployment, spark: SparkSession, outcome: Outcome) -> None:
    base_dir = deployment.checked.base_dir
    expected_by_sink = case.expect if isinstance(case.expect, dict) else {}
    letters: list[Row] = []
    for query in deployment.plan.queries:
        wanted = [sink.name for sink in query.sinks if sink.name in expected_by_sink]
        if case.expect is not None and not isinstance(case.expect, dict):
            wanted = [query.sinks[0].name]
        if not set(query.sources) <= set(case.given):
            if wanted:
                missing = ", ".join(sorted(set(query.sources) - set(case.given)))
                raise FatalFailure(f"`given` has nothing for {missing}")
            continue
        with kept_frames() as keep:
            result, rejected = _result(query, deployment, spark, case, keep)
            kept = keep(without_origin(result))
            outcome.rows += kept.count()
            letters += rejected
            for name in wanted:
                expected = expected_by_sink.get(name, case.expect)
                _compare(kept, expected, name, case.columns, base_dir, outcome)
    outcome.dead_letters = letters
    if case.dead_letters is not None:
        _compare_letters(letters, _rows_of(case.dead_letters, base_dir), outcome)


def _result(
    query: QueryPlan, deployment: Deployment, spark: SparkSession, case: Case, keep: Any
) -> tuple[DataFrame, list[Row]]:
    base_dir = deployment.checked.base_dir
    chain = static_chain(query, deployment, spark, keep)
    for name, part in query.tables.items():
        if name not in case.given:
            raise FatalFailure(f"`given` has nothing for the table {name}")
        chain.add_table(part, source_frame(spark, part.filled(deployment.secrets), case.given[name], base_dir))
    sources = {
        name: source_frame(spark, part.filled(deployment.secrets), case.given[name], base_dir)
        for name, part in query.sources.items()
    }
    result = chain.set_aside(all_steps(chain, query, sources))
    letters = [_letter(row.asDict(recursive=True)) for frame in chain.rejected for row in frame.collect()]
    return result, letters


def _letter(row: Row) -> Row:
    origin = row["origin"] or {}
    return {
        "step": row["step"],
        "error": row["error"],
        "row": row["row"],
        "source": origin.get("source"),
        "offset": origin.get("offset"),
        "key": _text(origin.get("key")),
        "value": _text(origin.get("value")),
    }


def _text(value: Any) -> str | None:
    return None if value is None else bytes(value).decode(errors="replace")


def _compare(
    actual: DataFrame, expected: Any, place: str, columns: list[str] | None, base_dir: Path, outcome: Outcome
) -> None:
    names = columns or actual.columns
    if unknown := [name for name in names if name not in actual.columns]:
        raise FatalFailure(f"`columns` names {', '.join(unknown)}; the rows have {', '.join(actual.columns)}")
    chosen = actual.select(*(sf.col(f"`{name}`") for name in names))
    found = Counter(_json_texts(chosen))
    wanted = Counter(_json_texts(_expected_frame(chosen, expected, place, base_dir)))
    if found != wanted:
        difference = Difference(place, list(names))
        difference.missing = [json.loads(text) for text in (wanted - found).elements()]
        difference.unexpected = [json.loads(text) for text in (found - wanted).elements()]
        outcome.differences.append(difference)


def _expected_frame(actual: DataFrame, expected: Any, place: str, base_dir: Path) -> DataFrame:
    """The expectation, read into the types of what came out, so that `1` and `1.0` are the same double."""
    spark = actual.sparkSession
    path = None if isinstance(expected, list) else base_dir / expected
    if path is not None and path.suffix in (".csv", ".parquet"):
        if not path.exists():
            raise FatalFailure(f"fixture {path} is not there")
        reader = spark.read.option("header", "true").option("mode", "FAILFAST")
        return reader.schema(actual.schema).csv(str(path)) if path.suffix == ".csv" else reader.parquet(str(path))
    rows = _rows_of(expected, base_dir)
    for number, row in enumerate(rows, 1):
        if unknown := [name for name in row if name not in actual.columns]:
            known = ", ".join(actual.columns)
            raise FatalFailure(f"{place}: row {number} expects {', '.join(unknown)}, but the columns are {known}")
    texts = spark.createDataFrame([(json.dumps(row),) for row in rows], "text STRING")
    return texts.select(sf.from_json("text", actual.schema, {"mode": "FAILFAST"}).alias("row")).select("row.*")


def _rows_of(given: str | list[Any], base_dir: Path) -> list[Row]:
    rows = given if isinstance(given, list) else _json_lines(base_dir / given)
    if bad := [row for row in rows if not isinstance(row, Mapping)]:
        raise FatalFailure(f"a row is a mapping of columns and values, not {bad[0]}")
    return rows


def _json_lines(path: Path) -> list[Any]:
    rows = []
    for number, line in enumerate(read_file(path).splitlines(), 1):
        if line.strip():
            try:
                rows.append(json.loads(line))
            except ValueError as error:
                raise FatalFailure(f"fixture {path}, line {number}: {error}") from None
    return rows


def _json_texts(frame: DataFrame) -> list[str]:
    texts = frame.select(sf.to_json(sf.struct("*"), _JSON)).collect()
    return [json.dumps(_rounded(json.loads(row[0])), sort_keys=True) for row in texts]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


def _compare_letters(found: list[Row], expected: list[Row], outcome: Outcome) -> None:
    """Each expectation names what it cares about; `error` may be a part of the text."""
    left = list(found)
    missing = []
    for row in expected:
        match = next((letter for letter in left if _fits(letter, row)), None)
        if match is None:
            missing.append(row)
        else:
            left.remove(match)
    if missing or left:
        columns = ["step", "error", "key", "value"]
        outcome.differences.append(Difference("dead letters", columns, missing, left))


def _fits(letter: Row, expected: Row) -> bool:
    return all(
        str(value) in str(letter.get(name)) if name == "error" else letter.get(name) == value
        for name, value in expected.items()
    )
