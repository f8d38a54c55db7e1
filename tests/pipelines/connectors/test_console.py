"""Batches on the terminal."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from ottla.pipelines.connectors.base import Batch, Written
from ottla.pipelines.connectors.console import ConsoleSink, ConsoleSinkOptions


def test_a_table_per_batch(
    spark: SparkSession,
    batch: Callable[..., Batch],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sink = ConsoleSink(ConsoleSinkOptions(rows=2, truncate=10))
    assert sink.problems() == []
    frame = spark.createDataFrame([(1, "[red]a", b"\xff"), (2, None, b"b" * 20)], "id int, name string, bytes binary")
    assert sink.write(frame.coalesce(1), batch(3)) == Written(rows=2)
    shown = capsys.readouterr().out
    assert "p, batch 3: 2 rows" in shown
    assert "[red]a" in shown
    assert "null" in shown
    assert "\\xff" in shown
    assert "bbbbbbbbb…" in shown
    assert sink.write(spark.range(5), batch(4)) == Written(rows=None)
    assert "p, batch 4: the first 2 rows" in capsys.readouterr().out
    assert sink.write(spark.range(0), batch(5)) == Written(rows=0)
    assert capsys.readouterr().out == ""


def test_problems() -> None:
    assert ConsoleSink(ConsoleSinkOptions(console=False)).problems() == [
        "console: write `console: true`, or leave the sink out"
    ]
