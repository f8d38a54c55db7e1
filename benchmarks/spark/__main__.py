"""Spark with `format("ottla")` and with its own connector, in turn, on Ottla and on Apache Kafka.

python -m benchmarks.spark [--quick] [--records N] [--rounds N] [--only NAME ...]
"""

import argparse
import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import generator, wire
from benchmarks.brokers import KINDS, Broker, new_broker
from benchmarks.spark import report
from benchmarks.spark.processes import FORMATS, spark_processes
from benchmarks.spark.workloads import WORKLOADS
from compat.peer import kafka, spark_connector
from rich.console import Console

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 150
RECORDS, QUICK_RECORDS = 10_000_000, 300_000


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    names = ", ".join(workload.name for workload in WORKLOADS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RECORDS:,} records, one round: figures are rough")
    parser.add_argument("--records", type=int, help=f"records of one read or write ({RECORDS:,})")
    parser.add_argument("--rounds", type=int, help="how often each is measured, after a round to warm up (3; quick: 1)")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"only those with this in their name: {names}")
    parser.add_argument("--formats", default="ottla,kafka", help="which formats to run, in turn (ottla,kafka)")
    parser.add_argument("--brokers", default="ottla,kafka", help="which brokers to run them on (ottla,kafka)")
    parser.add_argument("--master", default="local[2]", help="where Spark runs (local[2])")
    parser.add_argument("--memory", default="2g", help="memory of each Spark process's Java (2g)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for the results and the plot (docs)")
    arguments = parser.parse_args()
    for given, known in ((arguments.formats, FORMATS), (arguments.brokers, KINDS)):
        if unknown := set(given.split(",")) - set(known):
            parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return arguments


@contextlib.contextmanager
def _brokers(kinds: list[str], folder: Path) -> Iterator[dict[str, Broker]]:
    brokers = {kind: new_broker(kind, folder / kind) for kind in kinds}
    launched = []
    try:
        for broker in brokers.values():
            broker.prepare()
            broker.launch()
            launched.append(broker)
            wire.wait_for_first_record(broker.port, "ready")
        yield brokers
    finally:
        for broker in launched:
            broker.stop()


def main() -> None:
    """Measure, show, and write down."""
    arguments = _arguments()
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    records = arguments.records or (QUICK_RECORDS if arguments.quick else RECORDS)
    rounds = arguments.rounds or (1 if arguments.quick else 3)
    formats, kinds = arguments.formats.split(","), arguments.brokers.split(",")
    workloads = [each for each in WORKLOADS if not arguments.only or any(part in each.name for part in arguments.only)]
    generator.build()
    kafka.fetch()
    spark_connector.jars()
    results = report.Results(records, rounds, arguments.master)
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    try:
        with (
            _brokers(kinds, folder) as brokers,
            spark_processes(
                formats, brokers, master=arguments.master, memory=arguments.memory, folder=folder
            ) as processes,
        ):
            for workload in workloads:
                for figure in workload.measure(brokers, processes, records, rounds, console.log):
                    results.add(figure)
                    console.log(f"  {figure.value:,.0f} {figure.unit}, Spark's CPU {figure.spark_cpu:.2f} µs/record")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.show(results, console)
    for path in report.write(results, arguments.output):
        console.print(f"written: {path}")


if __name__ == "__main__":
    main()
