"""Results of a run: a table for people, a file for programs, a plot for the documentation."""

import json
import os
import platform
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.workloads import Metric
from rich.console import Console
from rich.table import Table

TITLES = {"ottla": "Ottla", "kafka": "Apache Kafka 4.3"}


class Item(Protocol):
    """Something that was measured: a workload, a life of a broker, something done to a cluster."""

    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def metrics(self) -> tuple[Metric, ...]: ...


class Line(NamedTuple):
    """One figure of one workload as both brokers reached it."""

    workload: str
    group: str
    label: str
    metric: Metric
    medians: dict[str, float]
    spread: dict[str, tuple[float, float]]
    effort: dict[str, str]

    @property
    def ratio(self) -> float | None:
        if "ottla" not in self.medians or not self.medians.get("kafka"):
            return None
        return self.medians["ottla"] / self.medians["kafka"]


@dataclass
class Results:
    """Everything one run measured."""

    rounds: int
    share: float
    kinds: list[str]
    limits: dict[str, float] = field(default_factory=dict)
    items: dict[str, Item] = field(default_factory=dict)
    runs: dict[str, dict[str, list[dict[str, float]]]] = field(default_factory=dict)

    def add(self, item: Item, kind: str, figures: Mapping[str, float]) -> None:
        self.items[item.name] = item
        self.runs.setdefault(item.name, {}).setdefault(kind, []).append(dict(figures))

    def lines(self) -> Iterator[Line]:
        for name, item in self.items.items():
            for metric in item.metrics:
                values = {kind: [run[metric.key] for run in runs] for kind, runs in self.runs[name].items()}
                yield Line(
                    workload=name,
                    group=item.group,
                    label=item.label if len(item.metrics) == 1 else f"{item.label}: {metric.label}",
                    metric=metric,
                    medians={kind: statistics.median(each) for kind, each in values.items()},
                    spread={kind: (min(each), max(each)) for kind, each in values.items()},
                    effort={kind: _effort(metric.unit, runs) for kind, runs in self.runs[name].items()},
                )


def _effort(unit: str, runs: list[dict[str, float]]) -> str:
    """What the broker's CPU spent, which stays true when client and broker share the cores."""
    if "broker_cpu_seconds" not in runs[0]:
        return ""
    spent = [run["broker_cpu_seconds"] for run in runs]
    if unit == "requests/s":
        return f"{statistics.median(map(_per, spent, (run['requests'] for run in runs))) * 1e6:.1f} µs/request"
    if unit == "ms":
        return f"{statistics.median(map(_per, spent, (run['records'] for run in runs))) * 1e6:.1f} µs/record"
    return f"{statistics.median(map(_per, spent, (run['bytes'] for run in runs))) * 1e9:.2f} s/GB"


def _per(seconds: float, count: float) -> float:
    return seconds / count


def number(value: float) -> str:
    """Three significant digits, with thousands separated."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(results: Results, console: Console) -> None:
    """Print the table of ratios and the machine's own limits."""
    table = Table(title=f"Medians of {results.rounds} alternating rounds, {results.share:g} of the full size")
    for heading in ("workload", "unit"):
        table.add_column(heading, overflow="fold")
    for kind in results.kinds:
        table.add_column(TITLES[kind], justify="right")
    for heading in ("ratio", "target"):
        table.add_column(heading, justify="right")
    for kind in results.kinds:
        table.add_column(f"CPU of {TITLES[kind]}", justify="right")
    group = ""
    for line in results.lines():
        if line.group != group:
            group = line.group
            table.add_section()
            table.add_row(f"[bold]{group}")
        figures = [number(line.medians[kind]) if kind in line.medians else "" for kind in results.kinds]
        effort = [line.effort.get(kind, "") for kind in results.kinds]
        table.add_row(f"  {line.label}", line.metric.unit, *figures, _verdict(line), str(line.metric.target), *effort)
    console.print(table)
    for name, rate in results.limits.items():
        console.print(f"limit of this machine, {name}: {rate:,.0f} MB/s")


def _verdict(line: Line) -> str:
    if line.ratio is None:
        return ""
    text = f"{line.ratio:.2f}x"
    if not str(line.metric.target):
        return text
    return f"[green]{text}[/green]" if line.metric.target.met_by(line.ratio) else f"[red]{text}[/red]"


def write(results: Results, folder: Path, name: str = "benchmarks") -> list[Path]:
    """Write benchmarks.json, and benchmarks.png when both brokers ran; `name` is what both are called."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{name}.json"
    data.write_text(json.dumps(_as_json(results), indent=1, ensure_ascii=False) + "\n")
    written = [data]
    if len(results.kinds) > 1:
        picture = folder / f"{name}.png"
        _plot(results, picture)
        written.append(picture)
    return written


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "rounds": results.rounds,
        "share": results.share,
        "limits_mb_per_second": results.limits,
        "lines": [
            {
                "workload": line.workload, "group": line.group, "label": line.label, "unit": line.metric.unit,
                "medians": line.medians, "spread": line.spread, "ratio": line.ratio,
                "target": str(line.metric.target), "broker_cpu": line.effort,
            }
            for line in results.lines()
        ],
        "runs": results.runs,
    }  # fmt: skip


def _colour(line: Line) -> str:
    """Green for a target that is met, red for one that is not, grey where there is none."""
    if not str(line.metric.target):
        return "#7a8590"
    return "#2a7f62" if line.metric.target.met_by(line.ratio or 0.0) else "#b5523b"


def _plot(results: Results, path: Path) -> None:
    # Imported here: it takes a second, and a run that ends in an error should not have waited for it.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    lines = [line for line in results.lines() if line.ratio]
    higher = [line for line in lines if line.metric.unit in {"records/s", "MB/s", "requests/s"}]
    lower = [line for line in lines if line not in higher]
    height = max(3.0, 0.32 * max(len(higher), len(lower)) + 1.5)
    figure, axes = plt.subplots(1, 2, figsize=(15, height), layout="constrained")
    panels = (("throughput: longer is better", higher), ("time and memory: shorter is better", lower))
    for axis, (title, chosen) in zip(axes, panels, strict=True):
        ratios = [line.ratio or 0.0 for line in chosen]
        colours = [_colour(line) for line in chosen]
        bars = axis.barh([f"{line.group}: {line.label}" for line in chosen], ratios, color=colours)
        axis.bar_label(bars, [f"{ratio:.2f}x" for ratio in ratios], padding=3, fontsize=8)
        axis.axvline(1.0, color="#444444", linewidth=1, linestyle="--")
        axis.set_title(f"Ottla / Apache Kafka 4.3, {title}", fontsize=10, loc="right")
        axis.tick_params(labelsize=8)
        axis.invert_yaxis()
        axis.margins(x=0.12)
    figure.savefig(path, dpi=110)
    plt.close(figure)
