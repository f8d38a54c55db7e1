"""Rules and dashboards ask only for what somebody measures; the page that lists them is current."""

import json
from pathlib import Path

import pytest
from compat.rule_cases import CASES
from tests.unit.test_docs import ROOT, load_tool

from ottla.cli.main import main
from ottla.monitoring.dashboards import panels, rules
from ottla.monitoring.dashboards.declared import DECLARED, OF_PROMETHEUS, names_in
from ottla.monitoring.dashboards.files import RULES_FILE
from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.pipelines import PIPELINE_METRICS


def test_what_is_asked_for_is_declared() -> None:
    asked = {
        name
        for expression in (
            *(rule.expression for group in rules.GROUPS.values() for rule in group),
            *(query.expression for board in panels.DASHBOARDS for panel in board.panels for query in panel.queries),
        )
        for name in names_in(expression)
    }
    assert len(asked) > 40, "the test looks at the expressions"
    assert not asked - set(DECLARED) - OF_PROMETHEUS


def test_names_of_broker_monitor_and_pipelines_do_not_collide() -> None:
    assert len(DECLARED) == len(METRICS) + len(MONITOR_METRICS) + len(PIPELINE_METRICS)


def test_every_rule_has_a_story_that_promtool_plays() -> None:
    assert [case.alert for case in CASES] == [rule.alert for group in rules.written().values() for rule in group]


def test_the_page_of_the_monitors_metrics_is_current() -> None:
    page = load_tool("generate_monitor_metrics_docs")
    assert (ROOT / "docs/monitor-metrics.md").read_text() == page.render(), "run make docs"


def test_files_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--write-dashboards", str(tmp_path / "new")]) == 0
    written = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert [path.name for path in written] == [
        RULES_FILE, "ottla-brokers.json", "ottla-lag.json", "ottla-end-to-end.json", "ottla-pipelines.json",
    ]  # fmt: skip
    text = written[0].read_text()
    for alert in (
        "KafkaOfflinePartitions",
        "ConsumerGroupStalled",
        "LogDirectoryFull",
        "ErrorBudgetBurnsFast",
        "PipelineFailed",
    ):
        assert f"- alert: {alert}\n" in text
    for path in written[1:]:
        board = json.loads(path.read_text())
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
        assert len(places) == len(set(places)) > 5
        assert all(target["expr"] for panel in board["panels"] for target in panel["targets"])


def test_a_folder_that_cannot_be_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["monitor", "--write-dashboards", str(tmp_path / "file")]) == 1
    assert f"cannot write to {tmp_path / 'file'}: File exists; name another folder" in capsys.readouterr().err
