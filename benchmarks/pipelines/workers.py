"""A pipeline on a standalone cluster of Spark with one worker and with two, a core each, in turn.

python -m benchmarks.pipelines.workers [--job example|filter|copy] [--batches ROWSxBATCHES] [--rounds N]

Broker, driver and workers share this machine: with two cores the second worker takes one of them from the others.
"""

import argparse
import statistics
import tempfile
from pathlib import Path

from benchmarks.pipelines.__main__ import run
from benchmarks.pipelines.jobs import EXAMPLE, JOBS
from rich.console import Console
from tests.spark_reliability.standalone import standalone_cluster

WORKERS = (1, 2)
CONF = [
    "spark.executor.memory=768m", "spark.executor.cores=1", "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelines.workers", description=__doc__)
    parser.add_argument("--job", choices=[EXAMPLE, *JOBS], default="filter", help="what is run (filter)")
    parser.add_argument("--batches", default="200000x4", metavar="ROWSxBATCHES", help="(200000x4)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run, in turn (2)")
    given = parser.parse_args()
    sizes = [[int(number) for number in given.batches.split("x")]]
    console = Console()
    taken: dict[int, list[float]] = {workers: [] for workers in WORKERS}
    for _ in range(given.rounds):
        for workers in WORKERS:
            with (
                tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder,
                standalone_cluster(Path(folder), workers=workers) as cluster,
            ):
                asked = argparse.Namespace(conf=CONF, against=None)
                figures = run("pipeline", given.job, sizes, asked, cluster.master_url)[str(sizes[0][0])]
            console.print(f"[dim]workers: {workers}, ms of each batch: {figures['all_ms']}[/dim]")
            taken[workers].append(figures["batch_ms"])
    one, two = (statistics.median(taken[workers]) for workers in WORKERS)
    console.print(
        f"ms a batch of {sizes[0][0]:,} rows: {one:,.0f} with one worker, {two:,.0f} with two; {one / two:.2f}x"
    )


if __name__ == "__main__":
    main()
