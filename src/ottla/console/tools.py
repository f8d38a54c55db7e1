"""Ottla's own commands, each run in a process of its own: what works on files and on Spark stays out of the console.

What they tell is kept for a while, and asked for again in the background: no page waits for a process to start.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ottla.console.starting import client_file, error_in
from ottla.model.errors import OttlaError

PROGRAM = (
    "import sys; from ottla.testing.child import end_with_parent; end_with_parent(); "
    "from ottla.cli.main import main; sys.exit(main())"
)
ASK_SECONDS_MAX = 60.0
CHANGE_SECONDS_MAX = 180.0
PAGE_SECONDS_MAX = 0.5
"""So long a page waits for what was never told yet."""
WORDS_MAX = 2000


class ToolFailed(OttlaError):
    """A command could not do what was asked; the message is what it said."""


class Told(NamedTuple):
    at: float
    document: Any
    error: str


NOTHING_YET = Told(0.0, None, "")


class Tools:
    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], Told] = {}
        self._under_way: dict[tuple[str, ...], asyncio.Task[None]] = {}
        self._asking: set[subprocess.Popen[bytes]] = set()
        self._one_at_a_time = asyncio.Semaphore(1)

    async def told(self, arguments: Sequence[str], kept_s: float, patience_s: float = PAGE_SECONDS_MAX) -> Told:
        """What the command said last. Where that is older than `kept_s`, it is asked again meanwhile.

        `patience_s`: how long to wait where it has said nothing yet."""
        key = tuple(arguments)
        known = self._kept.get(key, NOTHING_YET)
        if time.monotonic() - known.at < kept_s and known is not NOTHING_YET:
            return known
        task = self._under_way.get(key)
        if task is None or task.done():
            task = self._under_way[key] = asyncio.create_task(self._ask(key))
        if known is NOTHING_YET:
            await asyncio.wait([task], timeout=patience_s)
        return self._kept.get(key, NOTHING_YET)

    def known(self, arguments: Sequence[str]) -> Told:
        """What it said last, without asking."""
        return self._kept.get(tuple(arguments), NOTHING_YET)

    def forget(self, arguments: Sequence[str]) -> None:
        self._kept.pop(tuple(arguments), None)

    async def do(self, arguments: Sequence[str], changes: Sequence[str]) -> Any:
        """Run a command that changes something; what it said. It goes on to its end if whoever asked goes away.

        `changes`: the command that tells of what is changed, which is asked anew."""
        found = await asyncio.to_thread(self._run, tuple(arguments), CHANGE_SECONDS_MAX, False)
        self.forget(changes)
        if found.error:
            raise ToolFailed(found.error)
        return found.document

    async def ask(self, arguments: Sequence[str], client: Mapping[str, str]) -> Any:
        """Run a command that only looks, now, with these settings of a client; what it said."""
        async with self._one_at_a_time:
            found = await asyncio.to_thread(self._run, tuple(arguments), ASK_SECONDS_MAX, True, client)
        if found.error:
            raise ToolFailed(found.error)
        return found.document

    async def close(self) -> None:
        """What only looks is ended; what changes something comes to its end before the process does."""
        for task in self._under_way.values():
            task.cancel()
        for process in list(self._asking):
            process.terminate()
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _ask(self, arguments: tuple[str, ...]) -> None:
        async with self._one_at_a_time:
            self._kept[arguments] = await asyncio.to_thread(self._run, arguments, ASK_SECONDS_MAX, True)

    def _run(
        self,
        arguments: tuple[str, ...],
        seconds_max: float,
        only_looks: bool,
        client: Mapping[str, str] | None = None,
    ) -> Told:
        """In a thread."""
        ours, theirs = os.pipe()  # held open and never written to: its end is how the child knows of ours
        try:
            with client_file(client) as (more, pipe):
                process = subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, *arguments, *more],
                    stdin=ours, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, pass_fds=pipe,
                )  # fmt: skip
            if only_looks:
                self._asking.add(process)
            try:
                output, errors = process.communicate(timeout=seconds_max)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return Told(time.monotonic(), None, f"it did not come to an end in {seconds_max:.0f} s, and was ended")
            finally:
                self._asking.discard(process)
        except OSError as error:
            return Told(time.monotonic(), None, f"it cannot be started: {error}")
        finally:
            os.close(ours)
            os.close(theirs)
        return read(process.returncode, output.decode(errors="replace"), errors.decode(errors="replace"))


def read(code: int, output: str, errors: str) -> Told:
    """A command that prints JSON has done its work, whatever its exit code says of what it found."""
    with contextlib.suppress(ValueError):
        return Told(time.monotonic(), json.loads(output), "")
    said = error_in(errors) or errors.strip()
    return Told(time.monotonic(), None, said[-WORDS_MAX:] or f"it ended with code {code} and said nothing")
