"""Run the workloads against Ottla and Apache Kafka in turn: python -m benchmarks [--quick] [--only NAME ...]."""

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks import generator, limits, page, report, wire
from benchmarks.brokers import KINDS, Broker, new_broker
from benchmarks.lifecycle import LIVES, run_life
from benchmarks.secured import SECURED, SecuredBroker, secured_broker
from benchmarks.workloads import WORKLOADS
from compat.peer import kafka
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

B = TypeVar("B")
ROOT = Path(__file__).resolve().parents[1]
LIMIT_BYTES = 2_000_000_000
WIDTH = 170


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    items: tuple[report.Item, ...] = (*WORKLOADS, *SECURED, *LIVES)
    names = ", ".join(item.name for item in items)
    parser.add_argument("--quick", action="store_true", help="a quarter of the size, two rounds: figures are rough")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"only those with this in their name: {names}")
    parser.add_argument("--rounds", type=int, help="how often each workload runs against each broker (5; quick: 2)")
    parser.add_argument("--share", type=float, help="share of the full size of each workload (1; quick: 0.25)")
    parser.add_argument("--brokers", default="ottla,kafka", help="which to run, in this order (ottla,kafka)")
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="folder for the results and the plot (docs)")
    return parser.parse_args()


@contextlib.contextmanager
def _running(kinds: list[str]) -> Iterator[dict[str, Broker]]:
    """All brokers up side by side, so that a slow minute of the machine hits them alike."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
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
        shutil.rmtree(folder)


@contextlib.contextmanager
def _running_secured(kinds: list[str]) -> Iterator[dict[str, SecuredBroker]]:
    """The same with TLS, logins and an authorizer; what needs none of it goes over their plain listener."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        yield {kind: stack.enter_context(secured_broker(kind, folder / kind)) for kind in kinds}


def _selected(name: str, only: list[str] | None) -> bool:
    return not only or any(part in name for part in only)


def _alternate(
    runs: Sequence[tuple[report.Item, Callable[[B, float], Mapping[str, float]]]],
    brokers: Mapping[str, B],
    results: report.Results,
    step: Callable[[report.Item, str], None],
) -> None:
    """Each workload against each broker in turn, again and again."""
    for item, run in runs:
        for round_number in range(results.rounds + 1):
            for kind, broker in brokers.items():
                step(item, kind)
                # Round 0 only warms up: a Java virtual machine is slow until it has compiled the path.
                figures = run(broker, results.share if round_number else min(results.share, 0.25))
                if round_number:
                    results.add(item, kind, figures)


def _measure_limits(results: report.Results, share: float) -> None:
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        path = Path(folder, "bytes")
        results.limits["socket to file"] = limits.socket_to_file(path, int(LIMIT_BYTES * share))
        results.limits["file to socket by sendfile"] = limits.file_to_socket(path)
    os.sync()


def main() -> None:
    """Measure, show, and write down."""
    arguments = _arguments()
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)  # a log file has no width of its own, and the table needs some
    kinds = arguments.brokers.split(",")
    if unknown := set(kinds) - set(KINDS):
        console.print(f"unknown broker {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
        raise SystemExit(2)
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    share = arguments.share or (0.25 if arguments.quick else 1.0)
    workloads = [item for item in WORKLOADS if _selected(item.name, arguments.only)]
    secured = [item for item in SECURED if _selected(item.name, arguments.only)]
    lives = [item for item in LIVES if _selected(item.name, arguments.only)]
    generator.build()
    kafka.fetch()
    results = report.Results(rounds=rounds, share=share, kinds=kinds)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        steps = (len(workloads) + len(secured)) * (rounds + 1) + sum(min(rounds, life.rounds_max) for life in lives)
        task = progress.add_task("limits of the machine", total=steps * len(kinds))

        def step(item: report.Item, kind: str) -> None:
            progress.update(task, description=f"{item.group}: {item.label} ({kind})", advance=1)

        if not arguments.only:
            _measure_limits(results, share)
        if workloads:
            with _running(kinds) as brokers:
                _alternate([(item, item.run) for item in workloads], brokers, results, step)
        if secured:
            with _running_secured(kinds) as guarded:
                _alternate([(item, item.run_secured) for item in secured], guarded, results, step)
        for life in lives:
            for _ in range(min(rounds, life.rounds_max)):
                for kind in kinds:
                    step(life, kind)
                    results.add(life, kind, run_life(life, partial(new_broker, kind), share))
    _tell(results, console, arguments.output)


def _tell(results: report.Results, console: Console, folder: Path) -> None:
    report.show(results, console)
    for path in report.write(results, folder):
        console.print(f"written: {path}")
    if page.update(results, folder / "benchmarks.md"):
        console.print(f"written: {folder / 'benchmarks.md'}")


if __name__ == "__main__":
    main()
