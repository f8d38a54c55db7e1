"""Options that the commands of `ottla pipeline` share."""

import argparse
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import TYPE_CHECKING

from ottla.cli.common.options import BOOTSTRAP_VARIABLE, DEFAULT_BOOTSTRAP, parse_pairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_STATE_DIR = ".ottla/pipelines"
DEFAULT_MASTER = "local[*]"


def add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pipeline files: .yaml, .sql or .py")


def add_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="a pipeline file: .yaml, .sql or .py")


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for scripts instead of text for people")


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path(DEFAULT_STATE_DIR),
        metavar="DIR",
        help=f"where checkpoints and the status are kept (default: {DEFAULT_STATE_DIR})",
    )


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT,...",
        help=f"the brokers (default: the file's `bootstrap`, ${BOOTSTRAP_VARIABLE}, or else {DEFAULT_BOOTSTRAP})",
    )


def add_version(parser: argparse.ArgumentParser, text: str, *, required: bool = True) -> None:
    """`--version NAME`, for a parser that does not show Ottla's own version by this name."""
    parser.add_argument("--version", dest="output_version", metavar="NAME", required=required, help=text)


def add_spark(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument("--master", default=DEFAULT_MASTER, help=f"where Spark runs (default: {DEFAULT_MASTER})")
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


@contextmanager
def running_spark(
    name: str, master: str, conf: Mapping[str, str], *, short_lived: bool = False, small_batches: bool = False
) -> "Iterator[SparkSession]":
    """A session that was there before is used, and left running."""
    from pyspark.sql import SparkSession

    from ottla.pipelines.runner.session import pipeline_session

    was_there = SparkSession.getActiveSession() is not None
    session = pipeline_session(name, master, conf, short_lived=short_lived, small_batches=small_batches)
    try:
        yield session
    finally:
        if not was_there:
            session.stop()


def asked_spark(
    args: argparse.Namespace, name: str, *, short_lived: bool = False, small_batches: bool = False
) -> "AbstractContextManager[SparkSession]":
    """Spark as the options want it."""
    conf = parse_pairs(args.conf, "--conf")
    return running_spark(name, args.master, conf, short_lived=short_lived, small_batches=small_batches)


@contextmanager
def brief_spark(name: str, master: str, conf: Mapping[str, str], *, own_workers: bool) -> "Iterator[SparkSession]":
    """Spark for one short command: a session in the resident driver, if there is one and nothing is asked for that it
    has not; else one of its own. `own_workers`: the user's code runs in it."""
    from pyspark.sql import SparkSession

    from ottla.spark.resident.caller import keeper_program, lease, session_in

    plain = master == DEFAULT_MASTER and not conf and SparkSession.getActiveSession() is None
    lent = lease(keeper_program()) if plain else None
    chosen = (
        running_spark(name, master, conf, short_lived=True)
        if lent is None
        else session_in(lent, own_workers=own_workers)
    )
    with chosen as session:
        yield session


@contextmanager
def ending_in_order(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM ask for the end instead of causing it: the batch that runs is finished.

    A thread of its own calls `stop`. A handler runs inside whatever the main thread is doing: if that has just locked
    the event that `stop` sets, in order to wait for it, the two would wait for each other for ever.
    """
    asked: SimpleQueue[bool] = SimpleQueue()  # of all queues the one that handlers may use

    def pass_on() -> None:
        while asked.get():
            stop()

    def ask(number: int, frame: FrameType | None) -> None:
        asked.put(True)

    thread = threading.Thread(target=pass_on, name="signals", daemon=True)
    thread.start()
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        asked.put(False)
        thread.join()
