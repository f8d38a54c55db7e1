"""Results of a run: a table for people, a file for programs, a page and a plot for the documentation."""

import json
import os
import platform
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from benchmarks.spark.processes import FORMATS
from benchmarks.spark.workloads import WORKLOADS, Figure, Workload
from rich.console import Console
from rich.table import Table

BROKERS = {"ottla": "Ottla", "kafka": "Apache Kafka 4.3"}
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


class Line(NamedTuple):
    """One workload on one broker, with both formats."""

    workload: Workload
    broker: str
    medians: dict[str, float]
    spread: dict[str, tuple[float, float]]
    spark_cpu: dict[str, float]
    broker_cpu: dict[str, float]

    @property
    def ratio(self) -> float | None:
        """How many times as much, or as quick: more than one is better for ours."""
        if not {"ottla", "kafka"} <= set(self.medians):
            return None
        ratio = self.medians["ottla"] / self.medians["kafka"]
        return ratio if self.workload.unit == "records/s" else 1 / ratio


@dataclass
class Results:
    records: int
    rounds: int
    master: str
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)

    def lines(self) -> Iterator[Line]:
        for workload in WORKLOADS:
            for broker in BROKERS:
                found = [each for each in self.figures if (each.workload, each.broker) == (workload.name, broker)]
                by_format = {name: [each for each in found if each.format == name] for name in FORMATS}
                by_format = {name: each for name, each in by_format.items() if each}
                if not by_format:
                    continue
                values = {name: [each.value for each in chosen] for name, chosen in by_format.items()}
                yield Line(
                    workload,
                    broker,
                    {name: statistics.median(each) for name, each in values.items()},
                    {name: (min(each), max(each)) for name, each in values.items()},
                    {name: statistics.median(one.spark_cpu for one in each) for name, each in by_format.items()},
                    {name: statistics.median(one.broker_cpu for one in each) for name, each in by_format.items()},
                )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


HEADINGS = ("workload", "broker", "unit", "format ottla", "Spark's connector", "ratio", "CPU ottla", "CPU connector")


def _cells(line: Line) -> list[str]:
    def shown(name: str) -> str:
        if name not in line.medians:
            return ""
        low, high = line.spread[name]
        return f"{_number(line.medians[name])} ({_number(low)}–{_number(high)})"

    cpu = [f"{line.spark_cpu[name]:.2f}" if name in line.spark_cpu else "" for name in FORMATS]
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}x"
    return [line.workload.title, BROKERS[line.broker], line.workload.unit, shown("ottla"), shown("kafka"), ratio, *cpu]


def show(results: Results, console: Console) -> None:
    table = Table(title=f"{results.records:,} records, medians of {results.rounds} alternating rounds (lowest–highest)")
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="left" if index < 3 else "right")
    for line in results.lines():
        cells = _cells(line)
        if line.ratio is not None:
            cells[5] = f"[{'green' if line.ratio >= 1 else 'red'}]{cells[5]}"
        table.add_row(*cells)
    console.print(table)
    console.print("ratio: ours to Spark's connector, above 1 is better; CPU: µs of all Spark's processes for a record")


def write(results: Results, folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    data, page, picture = (folder / f"benchmarks-spark.{kind}" for kind in ("json", "md", "png"))
    data.write_text(json.dumps(_as_json(results), indent=1, ensure_ascii=False) + "\n")
    written = [data]
    if _update_page(results, page):
        written.append(page)
    if any(line.ratio is not None for line in results.lines()):
        _plot(results, picture)
        written.append(picture)
    return written


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": os.cpu_count(), "system": platform.system(), "python": platform.python_version()},
        "spark": pyspark.__version__,
        "master": results.master,
        "records": results.records,
        "rounds": results.rounds,
        "lines": [
            {
                "workload": line.workload.name, "title": line.workload.title, "broker": line.broker,
                "unit": line.workload.unit, "medians": line.medians, "spread": line.spread, "ratio": line.ratio,
                "spark_cpu_us_per_record": line.spark_cpu, "broker_cpu_us_per_record": line.broker_cpu,
            }
            for line in results.lines()
        ],
    }  # fmt: skip


def _update_page(results: Results, page: Path) -> bool:
    """Put the table between the marks of the page; its prose is written by hand."""
    if not page.exists():
        return False
    before, _, rest = page.read_text().partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        return False
    rows = [f"| {' | '.join(cells)} |" for cells in (HEADINGS, ["---"] * len(HEADINGS), *map(_cells, results.lines()))]
    about = (
        f"{results.records:,} records of each size, `{results.master}`, Spark {pyspark.__version__}, "
        f"{os.cpu_count()} CPUs; medians of {results.rounds} rounds (lowest–highest), CPU in µs a record."
    )
    page.write_text(f"{before}{BEGIN}\n{about}\n\n" + "\n".join(rows) + f"\n{END}{after}")
    return True


def _plot(results: Results, path: Path) -> None:
    # Imported here: it takes a second, and a run that ends in an error should not have waited for it.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    lines = [line for line in results.lines() if line.ratio is not None][::-1]
    figure, axis = plt.subplots(figsize=(10, 0.4 * len(lines) + 1.5), layout="constrained")
    ratios = [line.ratio or 0.0 for line in lines]
    labels = [f"{line.workload.title} ({BROKERS[line.broker]})" for line in lines]
    bars = axis.barh(labels, ratios, color=["#2a7f62" if ratio >= 1 else "#b5523b" for ratio in ratios])
    axis.bar_label(bars, [f"{ratio:.2f}x" for ratio in ratios], padding=3, fontsize=8)
    axis.axvline(1.0, color="#444444", linewidth=1, linestyle="--")
    axis.set_title("format ottla beside Spark's own connector: longer is better")
    figure.savefig(path, dpi=110)
    plt.close(figure)
