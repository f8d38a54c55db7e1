"""`ottla pipeline serve`: keep Spark's JVM for the next commands, so that they need not start one."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from ottla.cli.common.options import ToolParser
from ottla.cli.common.output import CommandError, note
from ottla.cli.pipeline.options import DEFAULT_MASTER, running_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = """
  %(prog)s &                               the next `ottla sql` and `ottla pipeline test` here use it
  %(prog)s --idle-minutes 60 &
  %(prog)s --stop                          ends it when nobody uses it any more
"""
NOTES = """
It serves commands of the same user with the same Ottla, Python, working directory and environment variables; others
start a Spark of their own, as do commands with --conf or --master. OTTLA_RESIDENT=on lets commands start it by
themselves, OTTLA_RESIDENT=off keeps them from using it.
"""
DEFAULT_IDLE_MINUTES = 10.0
PREPARED = "ottla.cli.prepared"


def main(argv: Sequence[str] | None = None, prog: str = "ottla pipeline serve") -> int:
    parser = ToolParser(
        prog,
        "Keep Spark's JVM for the next commands; ends by itself when it is idle.",
        EXAMPLES,
        notes=NOTES,
        help_without_arguments=False,
    )
    parser.add_argument(
        "--idle-minutes", type=float, default=DEFAULT_IDLE_MINUTES, metavar="MINUTES",
        help=f"end when nobody has used it for so long (default: {DEFAULT_IDLE_MINUTES:g})",
    )  # fmt: skip
    parser.add_argument("--stop", action="store_true", help="end those that run, of this user, and return")
    args = parser.parse(argv)
    if args.idle_minutes <= 0:
        raise CommandError("--idle-minutes wants more than 0")
    from ottla.spark.resident.place import folder_of

    folder = folder_of(os.environ)
    if folder is None:
        raise CommandError("there is no folder for its socket: XDG_CACHE_HOME has to be yours alone and not too long")
    if args.stop:
        _stop_all(folder)
        return 0
    return _serve(folder, args.idle_minutes * 60)


def _stop_all(folder: Path) -> None:
    from ottla.spark.resident.caller import ask_to_end

    for path in sorted(folder.glob("*.sock")):
        users = ask_to_end(folder, path.stem)
        if users is not None:
            note(f"a resident driver ends{f' after {users} that use it' if users else ''}")


def _serve(folder: Path, idle_seconds: float) -> int:
    from ottla.spark.resident.keeper import AlreadyKept, Keeper
    from ottla.spark.resident.place import command_socket_of, this_key

    key = this_key()
    keeper = Keeper(folder, key, lambda: _spark(command_socket_of(folder, key)), idle_seconds=idle_seconds)

    def ask(number: int, frame: FrameType | None) -> None:
        keeper.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    try:
        keeper.run(ready=lambda: note(f"a resident driver serves commands here, as process {os.getpid()}"))
    except AlreadyKept:
        note("a resident driver runs here already")
    return 0


@contextmanager
def _spark(commands: Path) -> "Iterator[SparkSession]":
    """A JVM, and beside it a Python for the commands that use it: both start at once, and end together."""
    from ottla.spark.workers.starting import can_listen_at, start_forking

    ends_it = start_forking(PREPARED, str(commands), os.environ) if can_listen_at(str(commands)) else None
    try:
        with running_spark("ottla resident driver", DEFAULT_MASTER, {}, short_lived=True) as spark:
            yield spark
    finally:
        if ends_it is not None:
            os.close(ends_it)
