"""Replicas that catch up go no faster than they may; those in sync are not held up."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import World, contents, world_of
from tests.virtual_time import run_virtually

from ottla.protocol.messages.fetch import FetchRequest

SIDES = ["leader", "follower"]


def in_world(directory: Path, test: Callable[[World], Awaitable[None]], **settings: str) -> None:
    async def run() -> None:
        async with world_of(directory, 1, 2, **settings) as world:
            await test(world)

    run_virtually(run())


def create(world: World, side: str, replicas: str, isr: tuple[int, ...] = (1, 2)) -> None:
    if side == "leader":
        world.create(1, 2, isr=isr, leader_replication_throttled_replicas=replicas)
    else:
        world.create(1, 2, isr=isr, follower_replication_throttled_replicas=replicas)


async def fill(world: World, count: int, size: int = 10_000) -> None:
    for _ in range(count):
        await world.brokers[1].produce(b"." * size, acks=1)


@pytest.mark.parametrize("side", SIDES)
def test_a_replica_that_catches_up_is_slowed(tmp_path: Path, side: str) -> None:
    async def check(world: World) -> None:
        world.cut(1, 2)
        create(world, side, "*", isr=(1,))
        await fill(world, 10)
        began = asyncio.get_running_loop().time()
        world.mend(1, 2)
        await world.settled()
        assert asyncio.get_running_loop().time() - began > 0.7, "100 kB at 60 kB a second take longer"
        assert contents(world.brokers[1].partition()) == contents(world.brokers[2].partition())

    limits = {f"{side}_replication_throttled_rate": "60000", "replica_fetch_max_bytes": "20000"}
    in_world(tmp_path, check, **limits)


@pytest.mark.parametrize("side", SIDES)
def test_replicas_in_sync_are_not_slowed(tmp_path: Path, side: str) -> None:
    async def check(world: World) -> None:
        create(world, side, "*")
        began = asyncio.get_running_loop().time()
        for _ in range(20):
            assert (await world.brokers[1].produce(b"." * 10_000)).error_code == 0
        assert asyncio.get_running_loop().time() - began < 3, "200 kB at 10 kB a second would take twenty seconds"

    in_world(tmp_path, check, **{f"{side}_replication_throttled_rate": "10000"})


@pytest.mark.parametrize("side", SIDES)
def test_only_the_listed_replicas_are_slowed(tmp_path: Path, side: str) -> None:
    async def check(world: World) -> None:
        world.cut(1, 2)
        create(world, side, "0:3,7:1,7:2", isr=(1,))
        await fill(world, 10)
        began = asyncio.get_running_loop().time()
        world.mend(1, 2)
        await world.settled()
        assert asyncio.get_running_loop().time() - began < 3

    in_world(tmp_path, check, **{f"{side}_replication_throttled_rate": "1000"})


def test_a_throttled_follower_asks_for_nothing_meanwhile(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.cut(1, 2)
        world.create(1, 2, isr=(1,), follower_replication_throttled_replicas="0:2")
        await fill(world, 10)
        world.mend(1, 2)
        await world.until(lambda: world.brokers[2].partition().log.end_offset > 0)
        world.calls.clear()
        await asyncio.sleep(0.2)
        fetches = [request for _, _, request in world.calls if isinstance(request, FetchRequest)]
        assert len(fetches) <= 2
        assert world.brokers[2].partition().log.end_offset < 10

    limits = {"follower_replication_throttled_rate": "1000", "replica_fetch_max_bytes": "20000"}
    in_world(tmp_path, check, **limits)
