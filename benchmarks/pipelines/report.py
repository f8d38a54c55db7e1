"""What came of a run with `--whole`: a table for people, a file for programs, the table and the plot of the page."""

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table

Taken = dict[str, list[dict[str, Any]]]
"""By contender, round after round: figures by the number of rows in a batch."""

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
AIMS = {"example": 0.7, "filter": 1.0, "copy": 1.0}
"""At most so many times as long as by hand."""
OURS, BY_HAND = "pipeline", "hand"
HEADINGS = (
    "job", "rows", "ms a batch", "by hand", "ratio", "records/s", "by hand", "CPU s", "by hand", "first s", "by hand",
    "ratio",
)  # fmt: skip


class Line(NamedTuple):
    job: str
    rows: int
    medians: dict[str, dict[str, float]]
    """By contender and figure."""

    def ratio(self, figure: str) -> float | None:
        both = [self.medians[name].get(figure) for name in (OURS, BY_HAND)]
        return both[0] / both[1] if both[0] is not None and both[1] else None


def lines(everything: dict[str, Taken], sizes: Sequence[int]) -> Iterator[Line]:
    for job, taken in everything.items():
        for size in sizes:
            medians = {}
            for name in (OURS, BY_HAND):
                found = [each[str(size)] for each in taken[name] if str(size) in each]
                numbers = [key for key, value in found[0].items() if isinstance(value, int | float)] if found else []
                medians[name] = {key: statistics.median(each[key] for each in found) for key in numbers}
            if medians[OURS]:
                yield Line(job, size, medians)


def _cells(line: Line) -> list[str]:
    def shown(figure: str, decimals: int) -> list[str]:
        values = [line.medians[name].get(figure) for name in (OURS, BY_HAND)]
        return ["" if value is None else f"{value:,.{decimals}f}" for value in values]

    def ratio(figure: str) -> str:
        found = line.ratio(figure)
        return "" if found is None else f"{found:.2f}"

    return [
        line.job, f"{line.rows:,}", *shown("batch_ms", 0), ratio("batch_ms"), *shown("rows_s", 0),
        *shown("batch_cpu_s", 2), *shown("first_s", 1), ratio("first_s"),
    ]  # fmt: skip


def overview(found: Sequence[Line]) -> Table:
    table = Table(title="\nms a batch, and seconds to the first result", title_justify="left")
    for index, heading in enumerate(HEADINGS):
        table.add_column(heading, justify="right" if index else "left")
    for line in found:
        table.add_row(*_cells(line))
    return table


def write(found: Sequence[Line], folder: Path, about: str) -> list[Path]:
    """The page has prose around its table, which is written by hand."""
    data, page, picture = (folder / f"benchmarks-pipelines.{kind}" for kind in ("json", "md", "png"))
    data.write_text(json.dumps({"about": about, "lines": [line._asdict() for line in found]}, indent=1) + "\n")
    before, _, rest = page.read_text().partition(BEGIN) if page.exists() else ("", "", "")
    _, marked, after = rest.partition(END)
    if marked:
        rows = [HEADINGS, ["---"] * len(HEADINGS), *map(_cells, found)]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
        page.write_text(f"{before}{BEGIN}\n{about}\n\n{table}\n{END}{after}")
    _plot(found, picture)
    return [data, *([page] if marked else []), picture]


def _plot(found: Sequence[Line], path: Path) -> None:
    # Imported here: it takes a second, and a run that ends in an error should not have waited for it.
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    jobs = list(dict.fromkeys(line.job for line in found))
    figure, axes = plt.subplots(1, len(jobs), figsize=(4 * len(jobs), 3.6), layout="constrained", squeeze=False)
    for axis, job in zip(axes[0], jobs, strict=True):
        chosen = [line for line in found if line.job == job]
        sizes = [line.rows for line in chosen]
        for name, label, colour in ((OURS, "pipeline", "#2a7f62"), (BY_HAND, "by hand", "#b5523b")):
            axis.plot(sizes, [line.medians[name].get("batch_ms") for line in chosen], "o-", label=label, color=colour)
        axis.set(title=f"{job} (aim: {AIMS[job]}x)", xscale="log", yscale="log", xlabel="rows in a batch")
        for line in chosen:
            ratio = line.ratio("batch_ms")
            if ratio is not None:
                place = (line.rows, line.medians[OURS]["batch_ms"])
                axis.annotate(f"{ratio:.2f}x", place, xytext=(4, -12), textcoords="offset points", fontsize=8)
        axis.grid(visible=True, alpha=0.3)
    axes[0][0].set_ylabel("ms a batch")
    axes[0][0].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def machine() -> str:
    return f"{os.cpu_count()} CPUs, load of the last minute in the end {os.getloadavg()[0]:.1f}"
