"""Is it as quick as before? Two checkouts of Ottla in one sitting: python -m benchmarks.trees OTHER [--only NAME ...].

Both brokers are up side by side and take turns, round by round, under the same load; this one is run with the same
dependencies as the other. A difference within the spread of the rounds is none.
"""

import argparse
import contextlib
import shutil
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import generator, report, wire
from benchmarks.brokers import OttlaBroker
from benchmarks.workloads import WORKLOADS, Workload
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parents[1]
USUAL = (
    "produce-100b", "produce-1kb-8p", "batches-16kb", "batches-1mb", "consume-1kb-8p", "fetch-1kb",
    "one-record-1", "one-record-100",
)  # fmt: skip
OTHER, THIS = "other", "this"


@contextlib.contextmanager
def running(other: Path) -> Iterator[dict[str, OttlaBroker]]:
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
        stack.callback(shutil.rmtree, folder)
        brokers = {}
        for name, tree in ((OTHER, other), (THIS, HERE)):
            brokers[name] = OttlaBroker(folder / name, source=tree / "src")
            brokers[name].prepare()
            brokers[name].launch()
            stack.callback(brokers[name].stop)
            wire.wait_for_first_record(brokers[name].port, "ready")
        yield brokers


def measure(workloads: list[Workload], other: Path, rounds: int, share: float, console: Console) -> report.Results:
    results = report.Results(rounds=rounds, share=share, kinds=[OTHER, THIS])
    with running(other) as brokers:
        for item in workloads:
            for number in range(rounds + 1):
                # Who is first in a round may find the machine otherwise than who is second.
                for kind in sorted(brokers, reverse=number % 2 == 1):
                    figures = item.run(brokers[kind], share if number else min(share, 0.25))
                    if number:
                        results.add(item, kind, figures)
            console.print(f"{item.group}: {item.label} done")
    return results


def show(results: report.Results, console: Console) -> None:
    table = Table(title=f"Medians of {results.rounds} alternating rounds, {results.share:g} of the full size")
    for heading in ("workload", "unit", "other tree", "this tree", "this / other", "CPU of other", "CPU of this"):
        table.add_column(heading)
    for line in results.lines():
        cells = [
            f"{report.number(line.medians[kind])} ({' to '.join(map(report.number, line.spread[kind]))})"
            for kind in results.kinds
        ]
        runs = results.runs[line.workload]
        pairs = zip(runs[THIS], runs[OTHER], strict=True)
        ratio = statistics.median(this[line.metric.key] / other[line.metric.key] for this, other in pairs)
        effort = [line.effort[kind] for kind in results.kinds]
        table.add_row(f"{line.group}: {line.label}", line.metric.unit, *cells, f"{ratio:.3f}", *effort)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.trees", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="the other checkout, as `git worktree add` makes one")
    parser.add_argument(
        "--only", action="append", metavar="NAME", help=f"those with this in their name ({', '.join(USUAL)})"
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often each workload runs against each (7)")
    parser.add_argument("--share", type=float, default=0.25, help="share of the full size of each workload (0.25)")
    arguments = parser.parse_args()
    if not (arguments.other / "src" / "ottla").is_dir():
        parser.error(f"{arguments.other} is no checkout of Ottla: it has no src/ottla")
    generator.build()
    console = Console(width=190)
    workloads = [
        item
        for item in WORKLOADS
        if (any(part in item.name for part in arguments.only) if arguments.only else item.name in USUAL)
    ]
    show(measure(workloads, arguments.other.resolve(), arguments.rounds, arguments.share, console), console)


if __name__ == "__main__":
    main()
