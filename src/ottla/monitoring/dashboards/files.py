"""Writes alert rules for Prometheus and dashboards for Grafana to a folder."""

import json
from pathlib import Path
from typing import Any

from ottla.monitoring.dashboards.panels import Dashboard, Panel
from ottla.monitoring.dashboards.panels import written as written_dashboards
from ottla.monitoring.dashboards.rules import Rule
from ottla.monitoring.dashboards.rules import written as written_rules

RULES_FILE = "ottla-rules.yml"
WIDTH = 24
"""Of Grafana's grid."""
PANELS_IN_A_ROW = {"stat": 4, "timeseries": 2}
HEIGHTS = {"stat": 4, "timeseries": 8}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def write_files(folder: str) -> list[Path]:
    """The files that were written; those of the same names are replaced."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    rules = target / RULES_FILE
    rules.write_text(rules_text())
    paths = [rules]
    for dashboard in written_dashboards():
        path = target / f"{dashboard.uid}.json"
        path.write_text(json.dumps(dashboard_document(dashboard), indent=2) + "\n")
        paths.append(path)
    return paths


def rules_text() -> str:
    """YAML, of which JSON's strings are a part."""
    lines = ["# Written by `ottla monitor --write-dashboards`. Load it with rule_files in prometheus.yml.", "groups:"]
    for name, rules in written_rules().items():
        lines += [f"  - name: {name}", "    rules:"]
        for rule in rules:
            lines += _rule_lines(rule)
    return "\n".join(lines) + "\n"


def _rule_lines(rule: Rule) -> list[str]:
    return [
        f"      - alert: {rule.alert}",
        f"        expr: {json.dumps(rule.expression)}",
        f"        for: {rule.lasting}",
        "        labels:",
        f"          severity: {rule.severity}",
        "        annotations:",
        f"          summary: {json.dumps(rule.summary)}",
        f"          action: {json.dumps(rule.action)}",
    ]


def dashboard_document(dashboard: Dashboard) -> dict[str, Any]:
    panels = []
    x = y = 0
    row_height = 0
    for number, panel in enumerate(dashboard.panels, 1):
        width, height = WIDTH // PANELS_IN_A_ROW[panel.kind], HEIGHTS[panel.kind]
        if x + width > WIDTH or (row_height and height != row_height):
            x, y = 0, y + row_height
        row_height = height
        panels.append({**_panel(panel), "id": number, "gridPos": {"x": x, "y": y, "w": width, "h": height}})
        x += width
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "tags": ["kafka", "ottla"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]},
        "panels": panels,
    }


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "type": panel.kind,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": query.expression, "legendFormat": query.legend, "datasource": _SOURCE}
            for n, query in enumerate(panel.queries)
        ],
    }
