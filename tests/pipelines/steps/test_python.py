"""The `python` step: rows, batches and frames through functions that stand beside the pipeline file."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipelines.steps.conftest import Bench

from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.frames import ORIGIN, REJECTED
from ottla.pipelines.steps.python import PythonOptions, PythonStep
from ottla.pipelines.steps.user_code import load

Frames = Callable[[list[tuple[Any, ...]], str], DataFrame]


@pytest.fixture
def module(bench: Bench) -> Callable[[str, str], None]:
    def write(name: str, text: str) -> None:
        (bench.base_dir / f"{name}.py").write_text(dedent(text))

    return write


def test_a_function_of_rows_changes_adds_leaves_out_and_multiplies(
    bench: Bench, module: Callable[[str, str], None], with_origin: Frames
) -> None:
    module("helpers", "COUNTRIES = {'a': 'CZ'}\n")
    module(
        "enrich",
        """
        import helpers

        def add_country(row):
            if row["item"] == "skip":
                return None
            if row["item"] == "twice":
                return [row, {"item": "other"}]
            if row["item"] == "broken":
                raise ValueError("no such item")
            return {"country": helpers.COUNTRIES.get(row["item"])}
        """,
    )
    frame = with_origin([("a", 1), ("skip", 2), ("twice", 3), ("broken", 4), ("b", 5)], "item STRING, n INT")
    result = bench.apply("python", {"python": "enrich:add_country", "adds": "country STRING"}, frame)
    rows = [(row.item, row.n, row.country, row[ORIGIN].offset) for row in result.collect()]
    assert rows == [("a", 1, "CZ", 0), ("twice", 3, None, 2), ("other", 3, None, 2), ("b", 5, None, 4)]
    [rejected] = bench.rejects()
    assert (rejected.origin.offset, rejected.step) == (3, "1 python")
    assert rejected.error == "ValueError: no such item (enrich.py, line 10, in add_country)"
    assert rejected.row == '{"item": "broken", "n": 4}'
    assert bench.rejected[0].schema.simpleString() == REJECTED.simpleString()


def test_each_row_is_given_to_the_function_once(
    bench: Bench, module: Callable[[str, str], None], with_origin: Frames
) -> None:
    module(
        "counting",
        f"""
        def note(row):
            with open({str(bench.base_dir / "calls")!r}, "a") as calls:
                calls.write("x")
            if row["n"] % 2:
                raise KeyError("odd")
            return row
        """,
    )
    result = bench.apply("python", {"python": "counting:note"}, with_origin([(n,) for n in range(6)], "n INT"))
    assert [row.n for row in result.collect()] == [0, 2, 4]
    assert [row.error for row in bench.rejects()] == ["KeyError: 'odd' (counting.py, line 6, in note)"] * 3
    assert (bench.base_dir / "calls").read_text() == "x" * 6


def test_results_that_do_not_fit_are_rejected_with_the_field(
    bench: Bench, module: Callable[[str, str], None], with_origin: Frames
) -> None:
    module(
        "wrong",
        """
        def shape(row):
            return [{"m": 7}, {"m": "seven"}, {"m": 2 ** 40}, {"q": 1}, "text", [{"m": 1}, {"m": "x"}]][row["n"]]
        """,
    )
    result = bench.apply(
        "python", {"python": "wrong:shape", "schema": "m INT"}, with_origin([(n,) for n in range(6)], "n INT")
    )
    assert [row.m for row in result.collect()] == [7]
    errors = {row.origin.offset: row.error for row in bench.rejects()}
    assert errors == {
        1: "it returned 'seven' for `m`, which is not int32",
        2: "it returned 1099511627776 for `m`, which is not int32",
        3: errors[3],
        4: errors[4],
        5: "it returned 'x' for `m`, which is not int32",
    }
    assert "it returned `q`, which the step does not make: name it in `adds` (or `schema`)" in errors[3]
    assert "it returned str, and a row is a dict, None or a list of dicts" in errors[4]


@pytest.mark.parametrize(
    ("annotation", "body"),
    [
        ("pa.RecordBatch", "return pa.RecordBatch.from_arrays([double(batch['n'])], names=['n'])"),
        ("pa.Table", "return pa.table({'n': double(batch['n'])})"),
        ("pd.DataFrame", "double(pa.array(batch['n'])); return batch.assign(n=batch['n'] * 2)"),
    ],
)
def test_functions_of_batches(
    bench: Bench, module: Callable[[str, str], None], with_origin: Frames, annotation: str, body: str
) -> None:
    module(
        "batches",
        f"""
        import pandas as pd
        import pyarrow as pa
        import pyarrow.compute as pc

        def double(numbers):
            if 5 in numbers.to_pylist():
                raise ValueError("five")
            return pc.multiply(numbers, 2)

        def run(batch: {annotation}):
            {body}
        """,
    )
    result = bench.apply("python", {"python": "batches:run"}, with_origin([(n,) for n in range(8)], "n BIGINT"))
    assert [row.n for row in result.collect()] == [0, 2, 4, 6, 8, 12, 14]
    assert [(row.origin.offset, row.error) for row in bench.rejects()] == [
        (5, "ValueError: five (batches.py, line 8, in double)")
    ]


def test_a_function_of_frames_gets_the_frames_that_it_names(
    bench: Bench, module: Callable[[str, str], None], with_origin: Frames, spark: SparkSession
) -> None:
    module(
        "frames",
        """
        from pyspark.sql import DataFrame

        def join(orders: DataFrame, others: dict[str, DataFrame]) -> DataFrame:
            return orders.join(others["names"], "n")
        """,
    )
    bench.tables["names"] = spark.createDataFrame([(1, "one")], "n INT, name STRING")
    frame = with_origin([(1,), (2,)], "n INT")
    result = bench.apply("python", {"python": "frames:join", "uses": ["names"]}, frame)
    assert [(row.n, row.name, row[ORIGIN].offset) for row in result.collect()] == [(1, "one", 0)]


def test_without_dead_letters_a_failing_row_stops_the_query_and_is_named(
    bench: Bench, module: Callable[[str, str], None], spark: SparkSession
) -> None:
    module("fails", "def fail(row):\n    raise RuntimeError('no')\n")
    bench.rejecting = False
    result = bench.apply("python", {"python": "fails:fail"}, spark.createDataFrame([(7,)], "n INT"))
    with pytest.raises(Exception, match=r'step 1 python: RuntimeError: no .*the row: \{"n": 7\}'):
        result.collect()


def test_values_of_every_kind_pass_through_a_function_unchanged(
    bench: Bench, module: Callable[[str, str], None], spark: SparkSession
) -> None:
    module("same", "def same(row):\n    return dict(row)\n")
    frame = spark.sql(
        "SELECT TIMESTAMP'2024-05-06 07:08:09.123456' AS at, DATE'2024-05-06' AS day, 1.250BD AS price, X'00FF' AS raw,"
        " map('a', 1) AS numbers, array(named_struct('x', 1)) AS list, CAST(NULL AS STRING) AS nothing,"
        " TIMESTAMP_NTZ'2024-05-06 07:08:09.5' AS local"
    )
    result = bench.apply("python", {"python": "same:same"}, frame)
    assert result.collect() == frame.collect()


def test_two_folders_may_have_modules_of_one_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "enrich.py").write_text(f"def name():\n    return {folder!r}\n")
    assert [load("enrich:name", tmp_path / folder, "s")() for folder in ("one", "two")] == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_to_be_found\n", "cannot import `mod`: ModuleNotFoundError: No module named"),
        ("def f(:\n", "cannot import `mod`: SyntaxError"),
        ("def g(row): ...\n", "`mod` has no `f`"),
        ("f = 5\n", "`mod:f` is not a function"),
        ("def f(): ...\n", "takes no row"),
        ("def f(row: int): ...\n", "annotated as <class 'int'>"),
        ("import threading\nlock = threading.Lock()\ndef f(row):\n    lock\n", "cannot be sent to the executors"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(bench: Bench, spark: SparkSession, text: str, message: str) -> None:
    (bench.base_dir / "mod.py").write_text(text)
    with pytest.raises(FatalFailure, match="step 1 python: ") as refused:
        bench.apply("python", {"python": "mod:f"}, spark.range(1))
    assert message in str(refused.value)


def test_options_that_contradict_each_other_are_found_without_spark() -> None:
    assert PythonStep(PythonOptions(python="enrich")).problems() == [
        "`enrich` names no function: write module:function, for instance `enrich:add_country`"
    ]
    assert "exclude each other" in PythonStep(PythonOptions(python="a:b", adds="x INT", schema="y INT")).problems()[0]
