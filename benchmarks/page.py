"""The table of docs/benchmarks.md, written anew by every run between two marks; the words around it stay."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report import Line, Results, number

BEGIN = "<!-- table: written by python -m benchmarks -->\n"
END = "<!-- end of table -->\n"


def update(results: Results, page: Path) -> bool:
    """Put the results into the page, if it is there and both brokers ran."""
    if len(results.kinds) < 2 or not page.exists():
        return False
    text = page.read_text()
    before, found, rest = text.partition(BEGIN)
    _, found_end, after = rest.partition(END)
    if not found or not found_end:
        raise ValueError(f"{page.name} has no place for the table: it needs {BEGIN.strip()} and {END.strip()}")
    page.write_text(before + BEGIN + table(results) + END + after)
    return True


def table(results: Results) -> str:
    return "".join(f"{line}\n" for line in _lines(results))


def _lines(results: Results) -> Iterator[str]:
    yield (
        f"{datetime.now(UTC):%d %B %Y}: medians of {results.rounds} alternating rounds, {results.share:g} of the full "
        "size. The range of the rounds is in brackets; CPU is the broker's own."
    )
    yield ""
    yield "| workload | unit | Ottla | Apache Kafka 4.3 | ratio | target | CPU of Ottla | CPU of Kafka |"
    yield "|---|---|---|---|---|---|---|---|"
    group = ""
    for line in results.lines():
        if line.group != group:
            group = line.group
            yield f"| **{group}** | | | | | | | |"
        yield _row(line)
    for name, rate in results.limits.items():
        yield f"| *limit of this machine: {name}* | MB/s | {rate:,.0f} | | | | | |"


def _row(line: Line) -> str:
    cells = [line.label, line.metric.unit]
    for kind in ("ottla", "kafka"):
        low, high = line.spread.get(kind, (0.0, 0.0))
        cells.append(f"{number(line.medians[kind])} ({number(low)}-{number(high)})" if kind in line.medians else "")
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}x"
    met = line.ratio is None or not str(line.metric.target) or line.metric.target.met_by(line.ratio)
    cells += [ratio if met else f"**{ratio}**", str(line.metric.target)]
    cells += [line.effort.get("ottla", ""), line.effort.get("kafka", "")]
    return f"| {' | '.join(cells)} |"
