"""A group coordinator over real partitions with replicas on several brokers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import TOPIC, World, world_of

from ottla.broker.coordination import machine_shard
from ottla.broker.coordination.groups.events import Commit, OffsetToCommit
from ottla.broker.coordination.partition_log import PartitionLog
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.model.errors import ApiError, ErrorCode

NONE = ErrorCode.NONE


class Coordinators:
    """One on each broker of a world; they follow the metadata as a node lets them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.groups: dict[int, GroupCoordinator] = {}
        for node_id, broker in world.brokers.items():
            log = PartitionLog(broker.partitions, broker.store, broker.clock, TOPIC)
            groups = GroupCoordinator(log, lambda broker=broker: broker.config.broker, broker.clock)  # type: ignore[misc]
            groups.start()
            broker.store.subscribe(lambda _, groups=groups: groups.refresh())  # type: ignore[misc]
            self.groups[node_id] = groups

    async def commit(self, node_id: int, offset: int, group_id: str = "g") -> ErrorCode:
        try:
            answer = self.groups[node_id].commit(Commit(group_id, [OffsetToCommit("x", 0, offset)]))
            return (answer if isinstance(answer, list) else await answer)[0]
        except ApiError as error:
            return error.code

    async def told(self, node_id: int, group_id: str = "g") -> int | ErrorCode | None:
        try:
            answer = self.groups[node_id].fetch_all_offsets(group_id)
            known = answer if isinstance(answer, dict) else await answer
        except ApiError as error:
            return error.code
        value = known.get("x", {}).get(0)
        return None if value is None else value.offset


@asynccontextmanager
async def coordinators(directory: Path, *nodes: int, min_insync: int = 1) -> AsyncIterator[Coordinators]:
    async with world_of(directory, *nodes, offsets_commit_timeout_ms="4000") as world:
        world.create(*nodes, min_insync_replicas=str(min_insync))
        made = Coordinators(world)
        yield made
        for groups in made.groups.values():
            groups.shutdown()


def test_offsets_are_acknowledged_when_the_replicas_have_them(tmp_path: Path) -> None:
    async def run() -> None:
        async with coordinators(tmp_path, 1, 2, 3) as all_of_them:
            world = all_of_them.world
            assert await all_of_them.commit(1, 5) is NONE
            assert {world.brokers[node].partition().log.end_offset for node in (1, 2, 3)} == {1}
            assert await all_of_them.told(1) == 5
            assert await all_of_them.commit(2, 6) is ErrorCode.NOT_COORDINATOR
            world.cut(1, 2)
            held = asyncio.ensure_future(all_of_them.commit(1, 7))
            await world.until(lambda: world.brokers[3].partition().log.end_offset == 3)
            assert not held.done()
            world.mend(1, 2)
            assert await held is NONE

    asyncio.run(run())


def test_another_broker_takes_over_and_gives_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with coordinators(tmp_path, 1, 2, 3) as all_of_them:
            world = all_of_them.world
            for turn, leader in enumerate((1, 2, 3, 1, 2)):
                if turn:
                    world.elect(leader)
                await all_of_them.groups[leader].wait_loaded()
                assert await all_of_them.told(leader) == (turn - 1 if turn else None)
                assert await all_of_them.commit(leader, turn) is NONE

    asyncio.run(run())


def test_a_broker_that_hears_nothing_answers_nobody(tmp_path: Path) -> None:
    """It still leads as far as it knows. Its followers have gone to another, so nothing that it says is certain."""

    async def run() -> None:
        async with coordinators(tmp_path, 1, 2, 3) as all_of_them:
            world = all_of_them.world
            assert await all_of_them.commit(1, 1) is NONE
            world.brokers[1].store.deaf = True
            world.elect(2, (2, 3))
            await all_of_them.groups[2].wait_loaded()
            assert await all_of_them.commit(2, 2) is NONE
            asked = [asyncio.ensure_future(all_of_them.told(1)), asyncio.ensure_future(all_of_them.commit(1, 9))]
            assert await all_of_them.commit(2, 3) is NONE
            assert not any(one.done() for one in asked)
            world.brokers[1].store.listen()
            assert [await one for one in asked] == [ErrorCode.NOT_COORDINATOR] * 2
            assert await all_of_them.told(2) == 3
            world.elect(1, (1, 2, 3))
            await all_of_them.groups[1].wait_loaded()
            assert await all_of_them.told(1) == 3

    asyncio.run(run())


def test_too_few_replicas_refuse_and_one_that_is_alone_still_tells(tmp_path: Path) -> None:
    async def run() -> None:
        async with coordinators(tmp_path, 1, 2, min_insync=2) as all_of_them:
            world = all_of_them.world
            assert await all_of_them.commit(1, 1) is NONE
            world.cut(1, 2)
            pending = asyncio.ensure_future(all_of_them.commit(1, 2))
            await world.until(lambda: world.brokers[1].partition().log.end_offset == 2)
            world.elect(1, (1,))  # the epoch is raised as well: the coordinator reads its log again
            assert await pending is ErrorCode.NOT_COORDINATOR
            assert await all_of_them.commit(1, 3) in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            )

    asyncio.run(run())


def test_snapshots_shorten_the_log_on_every_replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_shard, "SNAPSHOT_LOG_BYTES_MIN", 2000)

    async def run() -> None:
        async with coordinators(tmp_path, 1, 2, 3) as all_of_them:
            world = all_of_them.world
            for offset in range(60):
                assert await all_of_them.commit(1, offset, f"g{offset % 3}") is NONE
            leader = world.brokers[1].partition()
            await world.until(lambda: leader.log.start_offset > 0, "a snapshot")
            await world.until(
                lambda: all(
                    world.brokers[node].partition().log.start_offset == leader.log.start_offset for node in (2, 3)
                ),
                "the followers begin where the leader begins",
            )
            world.elect(3)
            await all_of_them.groups[3].wait_loaded()
            assert [await all_of_them.told(3, f"g{number}") for number in range(3)] == [57, 58, 59]

    asyncio.run(run())
