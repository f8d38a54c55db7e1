"""Every metric that docs/metrics.md and docs/monitor-metrics.md list is moved by a test."""

import ast
from pathlib import Path

import pytest
from tests.metrics_moved import MOVED_BY

from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.pipelines import PIPELINE_METRICS

ROOT = Path(__file__).parents[3]


def test_no_metric_is_listed_that_no_test_moves() -> None:
    named = {name for names in MOVED_BY.values() for name in names}
    listed = METRICS.keys() | MONITOR_METRICS.keys() | PIPELINE_METRICS.keys()
    assert not listed - named, "say in tests/metrics_moved.py which test moves them"
    assert not named - listed, "these are not declared"


@pytest.mark.parametrize("test", MOVED_BY)
def test_the_tests_are_there(test: str) -> None:
    path, _, name = test.partition("::")
    functions = [
        node.name for node in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(node, ast.FunctionDef)
    ]
    assert name in functions
