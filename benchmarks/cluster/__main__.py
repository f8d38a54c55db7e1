"""Three brokers of Ottla beside three of Apache Kafka: python -m benchmarks.cluster [--quick] [--only NAME ...]."""

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import generator, page, report
from benchmarks.cluster.clusters import KINDS, ClusterUnderTest, new_cluster
from benchmarks.cluster.workloads import WORKLOADS
from compat.peer import kafka
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 170
NAME = "benchmarks-cluster"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    names = ", ".join(item.name for item in WORKLOADS)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, one round: figures are rough")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"only those with this in their name: {names}")
    parser.add_argument("--rounds", type=int, help="how often each workload runs against each cluster (3; quick: 1)")
    parser.add_argument("--share", type=float, help="share of the full size of each workload (1; quick: 0.1)")
    parser.add_argument("--clusters", default="ottla,kafka", help="which to run, in this order (ottla,kafka)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for the results and the plot (docs)")
    return parser.parse_args()


@contextlib.contextmanager
def _running(kinds: list[str]) -> Iterator[dict[str, ClusterUnderTest]]:
    """Both clusters up side by side, so that a slow minute of the machine hits them alike."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    clusters = {kind: new_cluster(kind, folder / kind) for kind in kinds}
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        for cluster in clusters.values():
            stack.callback(cluster.stop)
            cluster.start()
        yield clusters


def main() -> None:
    """Measure, show, and write down."""
    arguments = _arguments()
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)  # a log file has no width of its own, and the table needs some
    kinds = arguments.clusters.split(",")
    if unknown := set(kinds) - set(KINDS):
        console.print(f"unknown cluster {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        raise SystemExit(2)
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    share = arguments.share or (0.1 if arguments.quick else 1.0)
    workloads = [item for item in WORKLOADS if not arguments.only or any(part in item.name for part in arguments.only)]
    generator.build()
    if "kafka" in kinds:
        kafka.fetch()
    results = report.Results(rounds=rounds, share=share, kinds=kinds)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with _running(kinds) as clusters, Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(workloads) * (rounds + 1) * len(kinds))
        for workload in workloads:
            for round_number in range(rounds + 1):
                for kind, cluster in clusters.items():
                    progress.update(task, description=f"{workload.group}: {workload.label} ({kind})", advance=1)
                    if not round_number and workload.group in ("recovery", "memory"):
                        continue  # nothing to warm up
                    # Round 0 only warms up: a Java virtual machine is slow until it has compiled the path.
                    figures = workload.run(cluster, share if round_number else min(share, 0.25))
                    if round_number:
                        results.add(workload, kind, figures)
    report.show(results, console)
    for path in report.write(results, arguments.output, NAME):
        console.print(f"written: {path}")
    if page.update(results, arguments.output / f"{NAME}.md"):
        console.print(f"written: {arguments.output / f'{NAME}.md'}")


if __name__ == "__main__":
    main()
