"""A scrape is made while it is sent: what was not asked for yet is neither read nor held."""

import asyncio
from collections.abc import Iterator

from ottla.broker.metrics.scraping import pieces
from ottla.telemetry.metric import Kind, Metric
from ottla.telemetry.prometheus import PIECE_BYTES, render
from ottla.telemetry.registry import Telemetry

ROWS = 2_000
GROUPS = 5


def telemetry_of(read: list[str]) -> Telemetry:
    telemetry = Telemetry()
    for number in range(GROUPS):
        metric = Metric(
            f"m{number}", f"x:type=M{number}", "Value", Kind.GAUGE, "1", "A figure.", ("topic", "partition")
        )

        def rows(metric: Metric = metric) -> Iterator[tuple[tuple[str, str], int]]:
            read.append(metric.name)
            return ((("a topic", str(row)), row) for row in range(ROWS))

        telemetry.observe(metric, rows)
    return telemetry


def test_pieces_are_read_as_they_are_asked_for_and_are_the_whole() -> None:
    read: list[str] = []
    telemetry = telemetry_of(read)

    async def work() -> list[bytes]:
        found = []
        async for piece in pieces(telemetry):
            found.append(piece)
            assert len(read) == len(found), "the next group is not read before this piece has gone"
        return found

    found = asyncio.run(work())
    assert len(found) == GROUPS
    assert b"".join(found).decode() == render(telemetry.tables())


def test_small_ones_go_together() -> None:
    telemetry = Telemetry()
    for number in range(300):
        telemetry.observe_one(
            Metric(f"m{number}", f"x:type=M{number}", "Value", Kind.GAUGE, "1", "A figure."), lambda: 1
        )

    async def work() -> list[bytes]:
        return [piece async for piece in pieces(telemetry, openmetrics=True)]

    text, end = asyncio.run(work())
    assert len(text) < PIECE_BYTES
    assert end == b"# EOF\n"
