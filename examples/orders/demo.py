"""`make demo`: a broker, a stream of orders, a pipeline on Spark whose driver is killed on the way, and an audit.

The audit reads everything that the pipeline wrote with other programs and compares it with what was generated.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from examples.orders.checks import Check, check_everything
from examples.orders.generator import customers, events, latest_customers
from examples.orders.plot import Sample, as_picture, as_text
from examples.orders.reading import count_committed
from examples.orders.stopwatch import Part, Stopwatch
from examples.orders.truth import expected
from ottla.testing import broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

HERE = Path(__file__).parent
SEED = 7
CUSTOMERS = 400
PARTITIONS = 4
GROUP = "ottla.orders.sales.orders"
TOPICS = ("orders", "orders.sales", "orders.revenue", "orders.dead")
SAMPLE_SECONDS = 0.5
FINISH_SECONDS_MAX = 900.0
WIDTH_WITHOUT_TERMINAL = 110
BATCHES = 8
"""The orders are processed in about so many batches. What is late is known from the third batch on, as Spark goes by
the watermark of the batch before last, and late orders are in the second half: fewer than six would be too few."""

_COMMAND = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]


class Feed:
    """Sends the orders at a steady rate, on its own thread."""

    def __init__(self, bootstrap: str, records: int, per_second: int) -> None:
        self.sent = 0
        self._per_second = per_second
        self._events = events(SEED, records, CUSTOMERS)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "acks": "all"}, logger=quiet)
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        begun = time.monotonic()
        for event in self._events:
            while True:
                try:
                    self._producer.produce("orders", event.value, event.key)
                    break
                except BufferError:
                    self._producer.poll(0.1)
            self.sent += 1
            ahead = self.sent / self._per_second - (time.monotonic() - begun)
            if ahead > 0.05:
                self._producer.poll(ahead)
        self._producer.flush()


class Watch:
    """Looks every half second at how many orders there are and how many the pipeline's group has behind it."""

    def __init__(self, bootstrap: str, begun: float) -> None:
        self.samples: list[Sample] = []
        self._begun = begun
        self._stopping = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP}, logger=quiet)
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    @property
    def processed(self) -> int:
        return self.samples[-1].processed if self.samples else 0

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            self.samples.append(self._look())

    def _look(self) -> Sample:
        partitions = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        ends = [self._consumer.get_watermark_offsets(partition, timeout=10.0)[1] for partition in partitions]
        committed = self._consumer.committed(partitions, timeout=10.0)
        processed = sum(max(0, position.offset) for position in committed)
        return Sample(time.monotonic() - self._begun, sum(ends), processed)


class Driver:
    """The pipeline's driver as a process of its own, as `ottla pipeline run` starts it."""

    def __init__(self, work: Path, bootstrap: str) -> None:
        self._work = work
        self._arguments = [
            "run", str(work / "pipeline.yaml"), "--json", "--master", "local[2]",
            "--conf", "spark.sql.shuffle.partitions=2",
            # Each driver lives for half a minute: what Java's slow compiler would have to say comes too late.
            "--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
            "--bootstrap-server", bootstrap, "--state-dir", str(work / "state"),
        ]  # fmt: skip
        self._log = work / "driver.log"
        self._process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*_COMMAND, "pipeline", *self._arguments], stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        """SIGKILL for Python and the JVM at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def restart(self) -> None:
        self._process = self._start()

    def check(self) -> None:
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"the driver ended with exit code {code}; its log ends:\n{self.log_tail()}")

    def stop(self) -> int:
        self._process.terminate()
        return self._process.wait(60)

    def close(self) -> None:
        if self._process.poll() is None:
            self.kill()

    def status(self) -> dict[str, Any]:
        done = subprocess.run(
            [*_COMMAND, "pipeline", "status", str(self._work / "pipeline.yaml"), "--json",
             "--state-dir", str(self._work / "state")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        document: dict[str, Any] = json.loads(done.stdout)[0]
        return document

    def log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])


class Demo:
    def __init__(self, console: Console, work: Path, records: int, per_second: int) -> None:
        self._console = console
        self._work = work
        self._records = records
        self._per_second = per_second
        self._begun = time.monotonic()
        self.samples: list[Sample] = []
        self.marks: dict[float, str] = {}
        self.stopwatch = Stopwatch()

    def run(self) -> list[Check]:
        self.stopwatch.part("a broker, topics, and what has to come out")
        shutil.copy(HERE / "pricing.py", self._work)
        (self._work / "pipeline.yaml").write_text(pipeline_file(self._records))
        truth = expected(events(SEED, self._records, CUSTOMERS), latest_customers(SEED, CUSTOMERS))
        with broker(data_dir=self._work / "broker") as running:
            self._say(f"a broker runs on {running.bootstrap}")
            _create_topics(running.bootstrap)
            _send_customers(running.bootstrap)
            self.stopwatch.part("the driver starts, to the end of its first batch")
            driver = Driver(self._work, running.bootstrap)
            self._say(f"the pipeline's driver starts as process {driver.pid}")
            feed = Feed(running.bootstrap, self._records, self._per_second)
            self._say(f"{truth.records:,} orders come in, {self._per_second:,} a second")
            watch = Watch(running.bootstrap, self._begun)
            try:
                self._kill_once(driver, watch)
                self._finish(driver, watch, feed, running.bootstrap, truth.records, len(truth.revenue))
                self.stopwatch.part("the driver stops")
                code = driver.stop()
                self._say(f"the driver was told to stop and ended with status {code}")
            finally:
                driver.close()
                watch.stop()
                self.samples = watch.samples
            self.stopwatch.part("the audit")
            late = sum(query["late_rows"] for query in driver.status()["queries"])
            self._say("everything is read back with other programs and compared")
            checks = check_everything(
                truth, running.bootstrap, self._work / "lake" / "sales", processed=watch.processed, late=late
            )
            return [*checks, Check("exit status of the driver", 0, code)]

    def _kill_once(self, driver: Driver, watch: Watch) -> None:
        """In the first half: what comes too late is in the second, and the driver that sees it counts it."""
        self._wait_for_more(driver, watch, 0)
        driver.kill()
        self.marks[time.monotonic() - self._begun] = "✗"
        self._say(f"[red]kill -9[/red] for the driver, with {watch.processed:,} orders processed and more in flight")
        self.stopwatch.part("it starts again, to the end of its next batch")
        processed = watch.processed
        driver.restart()
        self._say(f"it starts again as process {driver.pid}, from its checkpoint")
        self._wait_for_more(driver, watch, processed)

    def _wait_for_more(self, driver: Driver, watch: Watch, processed: int) -> None:
        def more() -> bool:
            driver.check()
            return watch.processed > processed

        wait_until(more, "more orders processed", seconds=FINISH_SECONDS_MAX)

    def _finish(self, driver: Driver, watch: Watch, feed: Feed, bootstrap: str, records: int, windows: int) -> None:
        def all_read() -> bool:
            driver.check()
            return feed.finished and watch.processed >= records

        self.stopwatch.part("the other orders")
        wait_until(all_read, "all orders processed", seconds=FINISH_SECONDS_MAX)
        self.stopwatch.part("the last windows close")
        self._say(f"all {records:,} orders are processed")

        def all_windows() -> bool:
            driver.check()
            return count_committed(bootstrap, "orders.revenue") >= windows

        wait_until(all_windows, "all windows written", seconds=FINISH_SECONDS_MAX)
        self._say("the last window is closed")

    def _say(self, words: str) -> None:
        self._console.print(f"[dim]{time.monotonic() - self._begun:6.1f} s[/dim]  {words}")


def pipeline_file(records: int) -> str:
    """The example's own file, with batches so small that the kill comes between them, however few the orders are."""
    text = (HERE / "pipeline.yaml").read_text()
    small, count = re.subn(r"max_records: \d+", f"max_records: {max(100, records // BATCHES)}", text)
    assert count == 1
    return small


def _create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=quiet)
    wanted = [NewTopic(topic, PARTITIONS) for topic in TOPICS]
    wanted.append(NewTopic("customers", 1, config={"cleanup.policy": "compact"}))
    for made in admin.create_topics(wanted).values():
        made.result(30)


def _send_customers(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap}, logger=quiet)
    for key, value, _ in customers(SEED, CUSTOMERS):
        producer.produce("customers", value, key)
    producer.flush()


def show(console: Console, checks: Sequence[Check]) -> None:
    table = Table(title="\nThe audit", title_justify="left")
    table.add_column("")
    table.add_column("expected", justify="right")
    table.add_column("found", justify="right")
    table.add_column("")
    for check in checks:
        mark = "[green]ok[/green]" if check.good else "[red]wrong[/red]"
        table.add_row(check.what, f"{check.expected:,}", f"{check.found:,}", mark)
    console.print(table)


def show_time(console: Console, parts: Sequence[Part]) -> None:
    console.print("\nWhere the time went")
    for part in parts:
        console.print(f"[dim]{part.seconds:6.1f} s[/dim]  {part.name}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--records", type=int, default=40_000, help="how many orders (default: 40000)")
    parser.add_argument("--per-second", type=int, default=1_600, help="how fast they come (default: 1600)")
    parser.add_argument("--png", type=Path, metavar="FILE", help="also plot to a picture, if matplotlib is installed")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work there and leave everything to look at")
    args = parser.parse_args(argv)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
    console.print("[bold]Ottla[/bold]: orders through a pipeline on Spark, exactly once, with a kill -9 on the way\n")
    work = args.keep or Path(tempfile.mkdtemp(prefix="ottla-demo-"))
    work.mkdir(parents=True, exist_ok=True)
    demo = Demo(console, work, args.records, args.per_second)
    begun = time.monotonic()
    try:
        checks = demo.run()
    finally:
        if not args.keep:
            shutil.rmtree(work, ignore_errors=True)
    parts = demo.stopwatch.stop()
    show(console, checks)
    show_time(console, parts)
    console.print()
    console.print(as_text(demo.samples, demo.marks), markup=False)
    console.print("[dim]            ✗ killed, and started again[/dim]")
    if args.png and as_picture(demo.samples, demo.marks, args.png):
        console.print(f"\nThe same as a picture: {args.png}")
    took = time.monotonic() - begun
    if all(check.good for check in checks):
        console.print(f"\n[bold green]Every order counts exactly once.[/bold green] ({took:.0f} s)")
        return 0
    console.print(f"\n[bold red]This is not as it should be.[/bold red] ({took:.0f} s)")
    return 1


if __name__ == "__main__":
    sys.exit(main())
