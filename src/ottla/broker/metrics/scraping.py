"""Reads all metrics on the loop, which owns what they are about, and never for long: requests come in between.

Text is made of them in a thread, whenever there are many, so that those of thousands of partitions are never held
together. It is one thread, always the same: what each thread frees the system keeps for that thread alone.
"""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import perf_counter

from ottla.telemetry.metric import PAUSE, Metric, Row, Table
from ottla.telemetry.prometheus import END, Text
from ottla.telemetry.registry import Telemetry

STEP_SECONDS_MAX = 0.002
ROWS_PER_LOOK = 16
ROWS_HELD_MAX = 1_000


_THREAD = ThreadPoolExecutor(1, "metrics")


class _Turns:
    def __init__(self) -> None:
        self._until = perf_counter() + STEP_SECONDS_MAX

    async def give_way(self) -> None:
        """If the loop has been held long enough."""
        if perf_counter() > self._until:
            await asyncio.sleep(0)
            self._until = perf_counter() + STEP_SECONDS_MAX


async def pieces(telemetry: Telemetry, *, openmetrics: bool = False) -> AsyncIterator[bytes]:
    """All metrics as text, as it is made: whoever sends each piece before it asks for the next never holds all."""
    turns = _Turns()
    held: list[Table] = []
    run = partial(asyncio.get_running_loop().run_in_executor, _THREAD)
    elsewhere = run(_read_here, telemetry)
    for group in telemetry.groups:
        if group not in telemetry.anywhere:
            held.append(await _read(telemetry, group, turns))
            if sum(len(table.rows) for table in held) > ROWS_HELD_MAX:
                text = Text(held, openmetrics=openmetrics)
                while piece := await run(text.next_piece):
                    yield piece
    held += await elsewhere
    held += telemetry.pushed()
    text = Text(held, openmetrics=openmetrics)
    while piece := await run(text.next_piece):
        yield piece
    if openmetrics:
        yield END


async def read_groups(telemetry: Telemetry, groups: list[tuple[Metric, ...]]) -> list[Table]:
    """Some of the metrics."""
    turns = _Turns()
    return [await _read(telemetry, group, turns) for group in groups]


async def _read(telemetry: Telemetry, group: tuple[Metric, ...], turns: _Turns) -> Table:
    rows: list[Row] = []
    for row in telemetry.rows(group):
        if row is not PAUSE:
            rows.append(row)
        if row is PAUSE or not len(rows) % ROWS_PER_LOOK:
            await turns.give_way()
    await turns.give_way()
    return Table(group, rows)


def _read_here(telemetry: Telemetry) -> list[Table]:
    return [telemetry.table(group) for group in telemetry.groups if group in telemetry.anywhere]
