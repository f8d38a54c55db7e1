"""The loop behind synchronous calls: its own thread, kept between calls, made anew after a fork."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from ottla.spark import loop


async def where() -> tuple[str, int]:
    return threading.current_thread().name, id(asyncio.get_running_loop())


def test_work_runs_on_one_thread_that_stays() -> None:
    first, again = loop.run(where()), loop.run(where())
    assert first == again
    assert first[0] == "ottla-loop"
    assert threading.current_thread().name != "ottla-loop"


def test_failures_come_back() -> None:
    async def fail() -> None:
        raise ValueError("what went wrong")

    with pytest.raises(ValueError, match="what went wrong"):
        loop.run(fail())


_FORKING = """
import os, sys
from ottla.spark import loop

async def pid():
    return os.getpid()

kept = {"connection": 1}
loop.after_fork(kept.clear)
assert loop.run(pid()) == os.getpid()
child = os.fork()
if child == 0:
    os._exit(0 if loop.run(pid()) == os.getpid() and not kept else 1)
_, status = os.waitpid(child, 0)
assert loop.run(pid()) == os.getpid() and kept
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_worker_has_a_loop_of_its_own_and_none_of_its_parents_connections() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKING], timeout=60, check=False, env=dict(os.environ))
    assert done.returncode == 0
