"""The orders example as a pipeline and by hand with PySpark and Spark's own connector, in turn, on one broker.

python -m benchmarks.pipelines [--job example|filter|copy] [--rows N] [--rounds N] [--hand] [--against DIR]
python -m benchmarks.pipelines --whole     every job, batches of 16 to 500,000 rows, by hand too, as one table

`--hand` wants the connector, which is fetched from Maven Central. `--against` is another checkout of this repository:
its pipelines run in turn with these. A busy machine makes all of them slow alike, so it is the ratios that count.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.pipelines import report
from benchmarks.pipelines.jobs import CUSTOMERS, EXAMPLE, FIGURES, JOBS, SEED
from benchmarks.pipelines.report import Taken
from compat.peer import spark_connector
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from examples.orders.generator import customers
from rich.console import Console
from rich.table import Table

from ottla.pipelines.runner.deployment import SMALL_RECORDS as SMALL
from ottla.testing import broker

ROOT = Path(__file__).resolve().parents[2]
ORDERS = ROOT / "examples" / "orders"
PARTITIONS = 4
BATCHES = {16: 12, 5_000: 8, 50_000: 5, 500_000: 3}
"""How many batches of a size are measured by default, the first of them included."""

HAND, HAND_HERE = "hand", "hand in our session"
"""Written by hand: in a session as PySpark comes, or in one like ours (archive of classes, workers that are forks)."""

LINES = {
    "batch_ms": "ms a batch (median without the first)",
    "rows_s": "records/s",
    "batch_cpu_s": "CPU s a batch (after the first)",
    "java_cpu_s": "  of it: JVM",
    "driver_cpu_s": "  of it: the driver's Python",
    "workers_cpu_s": "  of it: Python workers",
    "calls": "py4j calls a batch",
    "jobs": "Spark jobs a batch",
    "session_s": "s until the session is ready",
    "first_s": "s until the first batch is written",
    "first_cpu_s": "CPU s until then",
}


def run(
    name: str, job: str, sizes: list[list[int]], arguments: argparse.Namespace, master: str = "local[2]"
) -> dict[str, Any]:
    """One contender in a process of its own, with a broker of its own that gets the same data."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as work, broker() as running:
        _prepare(running.bootstrap)
        shutil.copy(ORDERS / "pricing.py", work)
        conf = dict(pair.split("=", 1) for pair in arguments.conf)
        by_hand = name in (HAND, HAND_HERE)
        if by_hand:
            conf["spark.jars"] = spark_connector.jars()
        asked: dict[str, Any] = {
            "kind": "hand" if by_hand else "ottla", "session": "plain" if name == HAND else "ottla",
            "bootstrap": running.bootstrap, "folder": work,
            "pipeline": str(ORDERS / "pipeline.yaml"), "sizes": sizes, "conf": conf,
            "job": job, "master": master,
        }  # fmt: skip
        path = [str((arguments.against if name == "before" else ROOT) / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*path, str(ROOT)])}
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("jobs.py")), json.dumps(asked)],
            cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    found = [line for line in done.stdout.splitlines() if line.startswith(FIGURES)]
    if not found:
        raise RuntimeError(f"{name} did not end well:\n{done.stderr[-4000:]}")
    figures: dict[str, Any] = json.loads(found[-1].removeprefix(FIGURES))
    return figures


def _prepare(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [NewTopic(name, PARTITIONS) for name in ("orders", "hand.sales")]
    wanted.append(NewTopic("customers", 1, config={"cleanup.policy": "compact"}))
    for made in admin.create_topics(wanted).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value, _ in customers(SEED, CUSTOMERS):
        producer.produce("customers", value, key)
    producer.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pipelines", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="how often each is run, in turn (2)")
    parser.add_argument("--job", choices=[EXAMPLE, *JOBS], default=EXAMPLE, help="what is run (example)")
    parser.add_argument("--rows", type=int, action="append", help="rows in a batch; may be repeated (5000, 16)")
    parser.add_argument("--batches", metavar="ROWSxBATCHES,...", help="rows in a batch, and how many batches")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark, for all")
    parser.add_argument("--whole", action="store_true", help="all jobs, all sizes, by hand too; the table of the docs")
    parser.add_argument("--hand", action="store_true", help="also the job by hand with Spark's connector")
    parser.add_argument("--hand-here", action="store_true", help="also the job by hand in a session like ours")
    parser.add_argument("--against", type=Path, metavar="DIR", help="also the pipelines of another checkout")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for what --whole writes (docs)")
    arguments = parser.parse_args()
    sizes = [[rows, BATCHES.get(rows, 5)] for rows in arguments.rows or (5_000, 16)]
    if arguments.batches:
        sizes = [[int(number) for number in words.split("x")] for words in arguments.batches.split(",")]
    if arguments.whole and not arguments.batches and not arguments.rows:
        sizes = [[rows, count] for rows, count in BATCHES.items()]
    by_hand = arguments.hand or arguments.whole
    names = ["pipeline", *(["before"] if arguments.against else []), *([HAND] if by_hand else [])]
    names += [HAND_HERE] if arguments.hand_here else []
    console = Console(width=None if sys.stdout.isatty() else 110)
    everything: dict[str, Taken] = {}
    for job in [EXAMPLE, *JOBS] if arguments.whole else [arguments.job]:
        taken: Taken = {name: [] for name in names}
        # Small batches and large ones in processes of their own: a JVM is started for the one or for the other.
        for some in (s for s in ([s for s in sizes if s[0] <= SMALL], [s for s in sizes if s[0] > SMALL]) if s):
            for round_ in range(arguments.rounds):
                for name in names:
                    figures = run(name, job, some, arguments)
                    console.print(f"[dim]{job}, {name}: {json.dumps(figures)}[/dim]")
                    _add(taken[name], round_, figures)
        everything[job] = taken
        for size, _ in sizes:
            console.print(_table(str(size), f"{job}, batches of {size} rows", names, taken))
        if arguments.whole:  # after each job: a run that is cut short has left something
            _write(everything, sizes, arguments, console)
    console.print(f"[dim]load of the last minute, in the end: {os.getloadavg()[0]:.1f}[/dim]")


def _write(
    everything: dict[str, Taken], sizes: list[list[int]], arguments: argparse.Namespace, console: Console
) -> None:
    lines = list(report.lines(everything, [size for size, _ in sizes]))
    console.print(report.overview(lines))
    counts = ", ".join(f"{count} of {size:,}" for size, count in sizes)
    about = f"`local[2]`, rounds: {arguments.rounds}, batches: {counts} rows; {report.machine()}."
    for path in report.write(lines, arguments.output, about):
        console.print(f"[dim]written: {path}[/dim]")


def _add(rounds: list[dict[str, Any]], number: int, figures: dict[str, Any]) -> None:
    if number == len(rounds):
        rounds.append({})
    rounds[number] |= figures


def _table(size: str, title: str, names: list[str], taken: dict[str, list[dict[str, Any]]]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left")
    for column in ["", *names, *(f"{name} / pipeline" for name in names[1:])]:
        table.add_column(column, justify="right" if column else "left")
    for key, line in LINES.items():
        if key in taken[names[0]][0][size]:
            middle = {name: statistics.median(each[size][key] for each in taken[name]) for name in names}
            ratios = [f"{middle[name] / middle['pipeline']:.2f}" if middle["pipeline"] else "" for name in names[1:]]
            table.add_row(line, *(f"{middle[name]:,.1f}" for name in names), *ratios)
    return table


if __name__ == "__main__":
    main()
