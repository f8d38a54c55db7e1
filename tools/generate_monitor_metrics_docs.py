"""Write docs/monitor-metrics.md from the declared metrics of the monitor, its alert rules and its dashboards."""

import sys
from pathlib import Path

from ottla.monitoring.dashboards import panels, rules
from ottla.monitoring.metrics import MONITOR_METRICS
from ottla.telemetry.metric import Metric

TARGET = Path(__file__).parent.parent / "docs/monitor-metrics.md"

HEAD = """# Metrics and alerts of the monitor

`ottla monitor` serves these at `/metrics` ([monitoring.md](monitoring.md)): lag under the names of Burrow, of
burrow_exporter and of kafka-lag-exporter, records end to end under those of Xinfra Monitor's MBeans (the service's name
is a label, and so is the percentile), and its own.
The brokers' metrics are in [metrics.md](metrics.md).

Written by `make docs` from `src/ottla/monitoring`; tests fail when it is not current, and when a metric is listed that
no test moves.

| name | kind | unit | what it says |
|---|---|---|---|
"""
ALERTS = """
## Alert rules

`ottla monitor --write-dashboards DIR` writes them for Prometheus, as `ottla-rules.yml`. A rule is written when somebody
measures all that it asks for.

| alert | lasting | severity | when | first |
|---|---|---|---|---|
"""
DASHBOARDS = """
## Dashboards

For Grafana, in the same folder; import them, and choose the data source at their top.

| file | panels |
|---|---|
"""


def render() -> str:
    alerts = (_alert(rule) for group in rules.written().values() for rule in group)
    boards = (
        f"| `{each.uid}.json` | {', '.join(panel.title for panel in each.panels)} |\n" for each in panels.written()
    )
    metrics = (_row(MONITOR_METRICS[name]) for name in sorted(MONITOR_METRICS))
    return HEAD + "".join(metrics) + ALERTS + "".join(alerts) + DASHBOARDS + "".join(boards)


def _row(metric: Metric) -> str:
    labels = "{" + ",".join(metric.labels) + "}" if metric.labels else ""
    return f"| `{metric.name}{labels}` | {metric.kind.value} | {metric.unit} | {metric.doc} |\n"


def _alert(rule: rules.Rule) -> str:
    expression = rule.expression.replace("|", "\\|")
    return f"| {rule.alert} | {rule.lasting} | {rule.severity} | `{expression}` | {rule.action} |\n"


def main() -> int:
    TARGET.write_text(render())
    print(f"{len(MONITOR_METRICS)} metrics written to docs/{TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
