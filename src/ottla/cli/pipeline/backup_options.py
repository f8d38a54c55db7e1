"""What the commands of `ottla backup` share: the place, who does the work, and how far it is."""

import argparse
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from ottla.cli.common.options import bootstrap_of, client_settings
from ottla.cli.common.output import CommandError, note, print_json
from ottla.cli.pipeline.options import DEFAULT_MASTER, running_spark
from ottla.pipelines.durations import seconds_of

if TYPE_CHECKING:
    from rich.progress import TaskID

    from ottla.pipelines.backup.spec import BackupFile
    from ottla.pipelines.backup.store import Place
    from ottla.pipelines.backup.work import Tasks

LINE_SECONDS = 5.0


class Where(NamedTuple):
    place: "Place"
    file: "BackupFile | None"


def add_place(parser: argparse.ArgumentParser, *, to: bool = False) -> None:
    parser.add_argument(
        "place", nargs="?", metavar="PLACE", help="a folder, s3://bucket/prefix, or a .yaml file with `to:` in it"
    )
    if to:
        parser.add_argument("--to", metavar="PLACE", help="the same")
    group = parser.add_argument_group(
        "S3", "keys are found as the AWS tools find them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, profiles, roles"
    )
    group.add_argument("--s3-endpoint", metavar="URL", help="a server other than Amazon's, http://127.0.0.1:9000")
    group.add_argument("--s3-region", metavar="REGION", help="the bucket's region")


def add_brokers(parser: argparse.ArgumentParser, what: str) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument("--bootstrap-server", metavar="HOST:PORT,...", help=what)
    group.add_argument("--command-config", metavar="FILE", help="properties file with settings for the client")


def add_master(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark", "little data is moved in this process, sooner than Spark starts")
    group.add_argument("--master", help=f"where Spark runs, also for little data (default: {DEFAULT_MASTER})")
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


def where_of(args: argparse.Namespace) -> Where:
    from ottla.pipelines.backup.spec import SUFFIXES, access_of, load_backup
    from ottla.pipelines.backup.store import place_of
    from ottla.pipelines.connectors.objects.store import S3Access

    text = args.place or getattr(args, "to", None)
    if not text:
        raise CommandError("say where the backups are: a folder, s3://bucket/prefix, or a .yaml file")
    file = load_backup(Path(text)) if text.endswith(SUFFIXES) else None
    access = S3Access(endpoint=args.s3_endpoint, region=args.s3_region) if file is None else access_of(file.s3)
    return Where(place_of(text if file is None else file.to, access), file)


def client_of(args: argparse.Namespace, file: "BackupFile | None") -> dict[str, str]:
    """Settings of clients: the command line's, else the file's."""
    own = client_settings(args)
    if file is not None and file.bootstrap and not args.bootstrap_server:
        return {**file.client, **own, "bootstrap.servers": file.bootstrap}
    return {**({} if file is None else file.client), **own, "bootstrap.servers": bootstrap_of(args)}


def parse_moment(text: str, option: str) -> int:
    """`2026-11-17T10:30`, with Z or an offset, or milliseconds; UTC if nothing else is said."""
    if re.fullmatch(r"\d{11,}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"{option} wants a time such as 2026-11-17T10:30:00Z, not `{text}`") from None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_length(text: str, option: str) -> float:
    try:
        return seconds_of(text)
    except ValueError as error:
        raise CommandError(f"{option}: {error}") from None


def opener(args: argparse.Namespace, name: str) -> "Callable[[int], AbstractContextManager[Tasks]]":
    """Spark if there is much to move, or if a master was named."""

    @contextmanager
    def open_tasks(size: int) -> "Iterator[Tasks]":
        from ottla.cli.common.options import parse_pairs
        from ottla.pipelines.backup.planning import SMALL_BYTES
        from ottla.pipelines.backup.work import Here, OnSpark

        if args.master is None and not args.conf and size < SMALL_BYTES:
            yield Here()
            return
        master, conf = args.master or DEFAULT_MASTER, parse_pairs(args.conf, "--conf")
        # Not the resident driver's: tasks of a command that was killed have to end with it.
        with running_spark(f"ottla backup {name}", master, conf) as spark:
            yield OnSpark(spark)

    return open_tasks


def readable_bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def readable_time(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S}"


class Progress:
    """How far the work is: a bar on a terminal, a line every few seconds elsewhere, JSON lines for scripts."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._lock = threading.Lock()
        self._bar = _Bar() if sys.stderr.isatty() and not json else None
        self._started = self._told = time.monotonic()
        self._what = ""
        self._total = self._bytes = self._records = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, what: str, parts: int, bytes_: int) -> None:
        self._what, self._total = what, bytes_
        self._bytes = self._records = 0
        self._started = self._told = time.monotonic()
        if self._bar is not None and parts:
            self._bar.begin(what, bytes_)

    def moved(self, *, records: int, bytes_: int) -> None:
        with self._lock:  # partitions are restored side by side
            self._records += records
            self._bytes += bytes_
            if self._bar is not None:
                self._bar.moved(self._bytes, self._records)
                return
            now = time.monotonic()
            if now - self._told < LINE_SECONDS:
                return
            self._told = now
            self._tell(now - self._started)

    def say(self, text: str) -> None:
        if self._json:
            print_json({"event": "note", "message": text})
        elif self._bar is not None:
            self._bar.say(text)
        else:
            note(text)

    def _tell(self, seconds: float) -> None:
        rate = self._bytes / max(seconds, 1e-3)
        left = (self._total - self._bytes) / max(rate, 1.0)
        if self._json:
            told = {"bytes": self._bytes, "of": self._total, "records": self._records, "bytes_per_second": round(rate)}
            print_json({"event": "progress", "what": self._what, **told, "seconds_left": round(left)})
            sys.stdout.flush()
            return
        done = f"{readable_bytes(self._bytes)} of {readable_bytes(self._total)}, {self._records:,} records"
        note(f"{self._what}: {done}, {readable_bytes(rate)}/s, {left:.0f} s left")


class _Bar:
    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
        from rich.progress import Progress as RichProgress

        self._progress = RichProgress(
            TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            TextColumn("{task.fields[records]:,} records"), TimeRemainingColumn(), console=Console(stderr=True),
        )  # fmt: skip
        self._task: TaskID | None = None

    def begin(self, what: str, total: int) -> None:
        self._progress.start()
        self._task = self._progress.add_task(what, total=total, records=0)

    def moved(self, bytes_: int, records: int) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=bytes_, records=records)

    def say(self, text: str) -> None:
        self._progress.console.print(f"note: {text}", markup=False, highlight=False)

    def stop(self) -> None:
        self._progress.stop()
