"""A JVM that commands share: what each has for itself, and what is left when one of them, or the driver, is killed."""

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.feeding import MakeTopic, Records
from tests.spark.residing import MARK, PATIENCE_S, be_alone, serving

from ottla.spark.resident.caller import ask_to_end, lease
from ottla.spark.resident.keeper import WORKERS_OF, AlreadyKept, Keeper
from ottla.spark.resident.place import SWITCH, socket_of, this_key
from ottla.testing.waiting import wait_until

COMMAND = [sys.executable, "-c", "import sys; from ottla.cli.main import main; sys.exit(main())"]
# A command of its own: it says how many rows its session sees in a view of a common name, and goes on when told to.
CALLER = """
import sys
from ottla.spark.resident.caller import lease, session_in
lent = lease()
with session_in(lent, own_workers=sys.argv[2] == "own") as spark:
    spark.range(int(sys.argv[1])).mapInArrow(lambda batches: batches, "id LONG").createTempView("mine")
    print(lent.number, spark.sql("SELECT count(*) FROM mine").collect()[0][0], flush=True)
    sys.stdin.readline()
    spark.range(0, 10**15, 1, 2).selectExpr("max(id)").collect()
"""


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Path:
    return be_alone(monkeypatch)


@contextmanager
def caller(rows: int, workers: str = "own") -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(rows), workers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def workers_of(number: str) -> list[int]:
    mark = f"{WORKERS_OF}={number}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _has_no_workers(number: str) -> bool:
    return not workers_of(number)


def test_two_commands_at_once_and_what_is_left_of_one_that_is_killed(spark: SparkSession, alone: Path) -> None:
    with serving(spark, alone), caller(3) as one, caller(5) as other:
        (first, three), (second, five) = said(one).split(), said(other).split()
        assert (three, five) == ("3", "5")
        assert first != second
        assert workers_of(first)
        with pytest.raises(AlreadyKept):
            Keeper(alone, this_key(), lambda: nullcontext(spark)).run()
        assert one.stdin is not None
        print(file=one.stdin, flush=True)
        tracker = spark.sparkContext.statusTracker()
        wait_until(tracker.getActiveJobsIds, "its long job runs", seconds=PATIENCE_S)
        one.kill()
        wait_until(lambda: not tracker.getActiveJobsIds(), "its job is cancelled", seconds=PATIENCE_S)
        wait_until(lambda: _has_no_workers(first), "its workers end", seconds=PATIENCE_S)
        assert other.stdin is not None
        print(file=other.stdin, flush=True)
        wait_until(tracker.getActiveJobsIds, "the other one goes on", seconds=PATIENCE_S)
    assert spark.range(2).count() == 2
    assert lease() is None  # it has ended, and its socket with it


def test_workers_of_a_command_that_has_ended_are_no_others(spark: SparkSession, alone: Path) -> None:
    """What they are told by would stay in the settings of the JVM, and the next command would find them dead."""
    with serving(spark, alone):
        for rows, workers in ((3, "own"), (4, "shared"), (5, "shared")):
            with caller(rows, workers) as process:
                number, counted = said(process).split()
                assert counted == str(rows)
                assert bool(workers_of(number)) is (workers == "own")
            wait_until(functools.partial(_has_no_workers, number), "its workers end", seconds=PATIENCE_S)


def test_what_is_raised_is_not_logged_as_well(spark: SparkSession, alone: Path) -> None:
    """PySpark writes what Java says, stack and all, to the stderr of whoever asks something wrong."""
    program = """
import pyspark
from ottla.spark.resident.caller import lease, session_in
with session_in(lease()) as spark:
    try:
        spark.sql("SELECT nothing_of_the_kind")
    except pyspark.errors.AnalysisException as error:
        print(error.getCondition())
"""
    with serving(spark, alone):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("UNRESOLVED_COLUMN")
    assert done.stderr == ""


def test_who_is_served_and_when_it_ends(spark: SparkSession, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(spark, alone) as keeper:
        lent = lease()
        assert lent is not None
        with monkeypatch.context() as changed:
            changed.setenv(SWITCH, "off")
            assert lease() is None
        with monkeypatch.context() as changed:
            changed.setenv("SOME_CREDENTIAL", "another's")
            assert lease() is None
        assert socket_of(alone, this_key()).stat().st_mode & 0o777 == 0o600
        assert ask_to_end(alone, this_key()) == 1
        assert lease() is None  # it only waits for the one that it has
        lent.connection.close()
    assert keeper is not None
    Keeper(alone, this_key(), lambda: nullcontext(spark), idle_seconds=0).run()  # idle from the beginning: it returns
    assert not socket_of(alone, this_key()).exists()
    # Another that was killed has left both of its files; one that runs has its lock.
    socket_of(alone, "0" * 16).touch()
    (alone / f"{'0' * 16}.lock").touch()
    with serving(spark, alone):
        assert not list(alone.glob("0" * 16 + ".*"))
        assert len(list(alone.glob(f"{this_key()}.*"))) == 2
    assert not list(alone.glob(f"{this_key()}.*"))


def test_a_command_starts_a_driver_and_the_next_one_says_so_when_it_was_killed(
    alone: Path, make_topic: MakeTopic, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole of it as a person has it, with a JVM of its own."""
    topic = make_topic("resident")
    records.send(topic, ["a", "b", "a"])
    monkeypatch.setenv(SWITCH, "on")
    monkeypatch.setenv("OTTLA_BOOTSTRAP", records.bootstrap)
    sql = [*COMMAND, "sql", f"SELECT value, count(*) AS n FROM {topic} GROUP BY value ORDER BY value", "--csv"]
    done = subprocess.run(sql, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("value,n\na,2\nb,1\n", 0), done.stderr
    lent = lease()
    assert lent is not None
    assert lent.number == 2
    lent.connection.close()
    with caller(1) as process:
        assert said(process) == "3 1"
        (keeper,) = _processes_with("pipeline\0serve\0")
        os.kill(keeper, signal.SIGKILL)
        assert process.stdin is not None
        print(file=process.stdin, flush=True)
        assert process.wait(PATIENCE_S) != 0
    monkeypatch.delenv(SWITCH)
    assert lease() is None  # nobody listens behind it


def _processes_with(words: str) -> list[int]:
    mark = f"{MARK}={os.environ[MARK]}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark in (path / "environ").read_bytes().split(b"\0")
            if ours and words in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return found
