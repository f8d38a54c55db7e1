"""A command that runs in a fork of a prepared process: what it prints, Ctrl-C and its exit code are its own."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux alone")

_PREPARED = """
import os, signal, sys
from ottla.spark.resident.place import command_socket_of, folder_of, this_key
from ottla.spark.workers.nursery import run_at

def become():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(sys.argv[1:], flush=True)
        sys.stdin.readline()
    except KeyboardInterrupt:
        sys.exit(7)
    sys.exit(3)

def prepare():
    print("ready", file=sys.stderr, flush=True)
    return become

run_at(str(command_socket_of(folder_of(os.environ), this_key())), prepare)
"""
_COMMAND = "import sys; from ottla.spark.resident.handing_over import hand_over; print(hand_over())"


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as cache:
        known = {name: value for name, value in os.environ.items() if name != "OTTLA_RESIDENT"}
        yield {**known, "XDG_CACHE_HOME": cache}


def command(environment: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "sql", "SELECT 1"], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip


def test_a_command_is_handed_over_with_its_files_and_signals(environment: dict[str, str]) -> None:
    with command(environment) as alone:
        assert alone.communicate()[0] == "None\n"  # nobody to hand it to
    prepared = subprocess.Popen(
        [sys.executable, "-c", _PREPARED], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with prepared:
        assert prepared.stderr is not None
        assert prepared.stderr.readline() == "ready\n"
        with command(environment) as one:
            assert one.communicate("go on\n")[0] == "['sql', 'SELECT 1']\n3\n"
        with command(environment) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "['sql', 'SELECT 1']\n"
            other.send_signal(signal.SIGINT)
            assert other.wait(60) == 0  # with its standard input still open
            assert other.stdout.read() == "7\n"
        with command({**environment, "OTTLA_RESIDENT": "off"}) as without:
            assert without.communicate()[0] == "None\n"
        assert prepared.stdin is not None
        prepared.stdin.close()
        assert prepared.wait(30) == 0
