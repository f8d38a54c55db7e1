"""The broker's end of the cleaning process: starts it when there is something to clean, and ends it."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable

from ottla.broker.storage.compaction.jobs import (
    LENGTH,
    CleanJob,
    Done,
    Failed,
    GoOn,
    Report,
    Swap,
    frame,
    report_decoder,
)
from ottla.model.errors import OttlaError

_WORKER = "ottla.broker.storage.compaction.worker"


class WorkerDied(OttlaError):
    """The cleaning process ended in the middle of a job."""


class CleaningProcess:
    """Runs one job at a time. The process starts with the first and stays for the next."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def run(self, job: CleanJob, swap: Callable[[Swap], Awaitable[None]]) -> Done | Failed:
        """Do a job. When `swap` raises or this is cancelled, the process ends and leaves .cleaned files at most."""
        try:
            process = await self._running()
            report = await self._exchange(process, job)
            while isinstance(report, Swap):
                await swap(report)
                report = await self._exchange(process, GoOn())
        except BaseException:
            await self.stop()
            raise
        return report

    async def _running(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", _WORKER, str(os.getpid()),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
        return self._process

    async def _exchange(self, process: asyncio.subprocess.Process, message: CleanJob | GoOn) -> Report:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(frame(message))
            await process.stdin.drain()
            (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            return report_decoder.decode(await process.stdout.readexactly(length))
        except (ConnectionError, asyncio.IncompleteReadError):
            raise WorkerDied("the cleaning process ended unexpectedly") from None

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        # A cancelled caller must still wait: the process may not outlive the files it works on.
        await asyncio.shield(process.wait())
        if process.stdin is not None:
            process.stdin.close()
