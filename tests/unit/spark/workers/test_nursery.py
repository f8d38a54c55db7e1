"""A daemon of Python workers that is a fork of the nursery: the process that Spark started, but for its imports."""

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.spark.workers.starting import PYTHON_VARIABLE, python_of, told_to_java, write_python
from ottla.spark.workers.words import PLACE_VARIABLE
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone")

# A nursery whose forks tell who they are, and how much they read, instead of being Spark's daemons.
_NURSERY = """
import json, os, socket, sys
from ottla.spark.workers.nursery import Nursery

def become():
    print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["GIVEN"], sys.path[-1], os.getpid()]), flush=True)
    sys.exit(len(sys.stdin.readline()))

with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    Nursery(listener, become).run()
"""


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    place = str(tmp_path / "n")
    with subprocess.Popen([sys.executable, "-c", _NURSERY, place], stdin=subprocess.PIPE) as process:
        wait_until(lambda: Path(place).exists(), "the nursery listens")
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(30) == 0


def daemon(tmp_path: Path) -> "subprocess.Popen[str]":
    (tmp_path / "here").mkdir(exist_ok=True)
    environment = {**os.environ, PLACE_VARIABLE: str(tmp_path / "n"), "GIVEN": "a value"}
    return subprocess.Popen(
        [sys.executable, "-m", "ottla.spark.workers.daemon", "pyspark.worker"], cwd=tmp_path / "here", env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("nursery")
def test_it_is_the_process_that_asked(tmp_path: Path) -> None:
    with daemon(tmp_path) as asked:
        assert asked.stdout is not None
        said = json.loads(asked.stdout.readline())
        assert said[:3] == [["pyspark.worker"], str(tmp_path / "here"), "a value"]
        assert said[4] != asked.pid
        out, _ = asked.communicate("four\n")
        assert (out, asked.returncode) == ("", 5)


@pytest.mark.usefixtures("nursery")
def test_it_ends_with_the_process_that_spark_knows(tmp_path: Path) -> None:
    with daemon(tmp_path) as asked:
        assert asked.stdout is not None
        pid = json.loads(asked.stdout.readline())[4]
        asked.send_signal(signal.SIGKILL)
        wait_until(lambda: not lives(pid), "the daemon ends, too")


@pytest.mark.usefixtures("nursery")
def test_its_standard_input_ends_with_that_of_the_process(tmp_path: Path) -> None:
    with daemon(tmp_path) as asked:
        assert asked.stdout is not None
        pid = json.loads(asked.stdout.readline())[4]
        assert asked.stdin is not None
        asked.stdin.close()
        assert asked.wait(30) == 0
        assert not lives(pid)


@pytest.mark.usefixtures("nursery")
def test_what_spark_starts_by_names_of_its_own_is_a_fork_as_well(tmp_path: Path) -> None:
    """The Python that Spark is told of leads to the nursery, whatever `spark.python.daemon.module` counts for."""
    place = str(tmp_path / "n")
    write_python(place)
    told = told_to_java(place)
    assert told == {PLACE_VARIABLE: place, PYTHON_VARIABLE: str(python_of(place))}
    source = "pyspark.sql.streaming.python_streaming_source_runner"
    for arguments, known_by in (
        (["pyspark.daemon", "pyspark.sql.worker.create_data_source"], ["pyspark.sql.worker.create_data_source"]),
        (["ottla.spark.workers.daemon", "pyspark.worker"], ["pyspark.worker"]),
        ([source], [source]),
    ):
        done = subprocess.run(
            [told[PYTHON_VARIABLE], "-m", *arguments], env={**os.environ, **told, "GIVEN": "a value"},
            input="\n", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (json.loads(done.stdout)[0], done.returncode) == (known_by, 1), done.stderr
    plain = subprocess.run([told[PYTHON_VARIABLE], "-c", "print('a b')"], capture_output=True, text=True, check=True)
    assert plain.stdout == "a b\n"


def test_where_it_cannot_be_executed_spark_starts_python_itself(tmp_path: Path) -> None:
    place = str(tmp_path / "n")
    write_python(place)
    python_of(place).chmod(0o600)
    assert told_to_java(place) == {PLACE_VARIABLE: place}


def is_gone(pid: int) -> bool:
    """Ended, whether or not its parent knows yet."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")


@pytest.mark.parametrize("first", ["the fork", "who waits for it"])
def test_both_can_go_at_once_and_others_are_served(
    nursery: "subprocess.Popen[bytes]", tmp_path: Path, first: str
) -> None:
    """On a busy machine it hears of both in the same moment, of one that it has let go of already."""
    with daemon(tmp_path) as asked:
        assert asked.stdout is not None
        pid = json.loads(asked.stdout.readline())[4]
        nursery.send_signal(signal.SIGSTOP)
        victims = [pid, asked.pid] if first == "the fork" else [asked.pid, pid]
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
            wait_until(functools.partial(is_gone, victim), "it is gone")
        nursery.send_signal(signal.SIGCONT)
    test_it_is_the_process_that_asked(tmp_path)
