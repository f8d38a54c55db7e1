"""Who is in sync: shrinking, growing, and what the number of them allows."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import World, world_of
from tests.virtual_time import run_virtually

from ottla.cluster.store import CommitUncertain, StoreError
from ottla.model.errors import ErrorCode


def test_a_follower_that_lags_for_too_long_is_left_out_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3)
            await world.brokers[1].produce(b"a")
            await world.settled()
            world.cut(1, 3)
            waiting = asyncio.ensure_future(world.brokers[1].produce(b"b", timeout_ms=60_000))
            await world.until(lambda: world.brokers[2].partition().log.end_offset == 2)
            await world.brokers[1].isr.check_all()
            assert world.state().isr == (1, 2, 3), "it has been behind for a moment only"
            assert not waiting.done()
            world.clock.ahead_s += 11
            await world.brokers[1].isr.check_all()
            await world.until(lambda: world.state().isr == (1, 2))
            assert (await waiting).error_code == 0
            world.mend(1, 3)
            await world.until(lambda: set(world.state().isr) == {1, 2, 3})
            assert (await world.brokers[1].produce(b"c")).error_code == 0

    with caplog.at_level(logging.INFO):
        run_virtually(run())
    told = [record.getMessage() for record in caplog.records if "ISR" in record.getMessage()]
    assert [line.split(": ", 1)[1] for line in told] == [
        "Shrinking ISR from 1,2,3 to 1,2",
        "Expanding ISR from 1,2 to 1,2,3",
    ]


def test_an_idle_partition_does_not_lose_its_followers_at_the_next_record(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            await world.settled()
            for _ in range(10):
                world.clock.ahead_s += 5
                await world.brokers[1].isr.check_all()
            world.cut(1, 2)
            await world.brokers[1].produce(b"b", acks=1)
            await world.brokers[1].isr.check_all()
            await asyncio.sleep(0.01)
            assert world.state().isr == (1, 2)

    run_virtually(run())


async def _cut_off_one_that_cannot_be_spared(world: World) -> None:
    """Both replicas have a record, both are needed, and the follower hears of nothing from now on."""
    world.create(1, 2, min_insync_replicas="2")
    await world.brokers[1].produce(b"a")
    await world.settled()
    world.cut(1, 2)


def test_too_few_in_sync_refuses_before_and_fails_after_the_append(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            await _cut_off_one_that_cannot_be_spared(world)
            waiting = asyncio.ensure_future(world.brokers[1].produce(b"b", timeout_ms=60_000))
            await world.until(lambda: world.brokers[1].partition().log.end_offset == 2)
            world.clock.ahead_s += 11
            await world.brokers[1].isr.check_all()
            assert (await waiting).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            assert (await world.brokers[1].produce(b"c")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert (await world.brokers[1].produce(b"d", acks=1)).error_code == 0
            assert world.brokers[1].partition().high_watermark == 1, "too few have it to show it to readers"
            world.mend(1, 2)
            await world.until(lambda: world.state().isr == (1, 2))
            await world.until(lambda: world.brokers[1].partition().high_watermark == 3)

    run_virtually(run())


def test_no_fewer_than_min_insync_replicas_are_left_in_sync(tmp_path: Path) -> None:
    """Nothing is committed without them, so who stays has everything; the one that is furthest behind goes."""

    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3, min_insync_replicas="2")
            await world.brokers[1].produce(b"a")
            await world.settled()
            world.cut(1, 3)
            await world.brokers[1].produce(b"b", acks=1)
            await world.until(lambda: world.brokers[2].partition().log.end_offset == 2)
            world.clock.ahead_s += 1
            world.cut(1, 2)
            leader = world.brokers[1].partition()
            await world.brokers[1].produce(b"c", acks=1)
            world.clock.ahead_s += 11
            await world.brokers[1].isr.check_all()
            await world.until(lambda: world.state().isr == (1, 2))
            assert world.state().late == (2,), "everybody is told who does not help"
            assert not leader.enough_replicas
            refused = await world.brokers[1].produce(b"d")
            assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert leader.log.end_offset == 3, "refused before it was written"
            world.mend(1, 2)
            await world.until(lambda: leader.high_watermark == 3)
            assert (await world.brokers[1].produce(b"d")).error_code == 0
            await world.until(lambda: world.state().late == ())

    run_virtually(run())


def test_the_first_to_fall_behind_is_told_as_late_when_none_can_be_spared(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            await _cut_off_one_that_cannot_be_spared(world)
            await world.brokers[1].produce(b"b", acks=1)
            world.clock.ahead_s += 11
            await world.brokers[1].isr.check_all()
            await world.until(lambda: (world.state().isr, world.state().late) == ((1, 2), (2,)))
            world.elect(1)
            await world.brokers[1].isr.check_all()
            await world.until(lambda: world.state().late == ())  # a new leader epoch: it has the full time again

    run_virtually(run())


def test_who_lagged_helps_again_while_records_keep_coming(tmp_path: Path) -> None:
    """It need not meet the very end of the log, only be late no longer."""

    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, min_insync_replicas="2")
            world.cut(1, 2)
            leader = world.brokers[1].partition()
            for _ in range(50):
                await world.brokers[1].produce(b"a", acks=1)
            world.clock.ahead_s += 11
            await world.brokers[1].isr.check_all()
            assert world.state().isr == (1, 2)
            assert (await world.brokers[1].produce(b"b")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            world.mend(1, 2)
            while not leader.enough_replicas:
                await world.brokers[1].produce(b"b", acks=1)
                await world.brokers[1].isr.check_all()
                await asyncio.sleep(0)
            assert (await world.brokers[1].produce(b"c")).error_code == 0

    run_virtually(asyncio.wait_for(run(), 20))


def test_more_than_there_are_replicas_cannot_be_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            world.create(1, min_insync_replicas="2")
            assert (await world.brokers[1].produce(b"a")).error_code == 0

    run_virtually(run())


def test_a_follower_joins_while_records_keep_coming(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, isr=(1,))
            world.cut(1, 2)
            for _ in range(50):
                await world.brokers[1].produce(b"a")
            world.mend(1, 2)
            while world.state().isr != (1, 2):
                await world.brokers[1].produce(b"b", acks=1)
                await asyncio.sleep(0)
            assert (await world.brokers[1].produce(b"c")).error_code == 0

    run_virtually(asyncio.wait_for(run(), 20))


def test_a_change_that_could_not_be_written_is_decided_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, isr=(1,))
            world.brokers[1].store.trouble = StoreError("no")
            await world.brokers[1].produce(b"a", acks=1)
            await world.until(lambda: world.brokers[1].store.commits > 0)
            assert world.state().isr == (1,)
            world.brokers[1].store.trouble = None
            await world.until(lambda: world.state().isr == (1, 2))

    run_virtually(run())


def test_while_it_is_uncertain_who_is_in_sync_everybody_counts_who_might_be(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, isr=(1,))
            leader = world.brokers[1].partition()
            world.brokers[1].store.trouble = CommitUncertain("the connection broke")
            await world.until(lambda: leader.isr_changes)
            await world.until(lambda: world.brokers[1].store.commits > 0)
            world.cut(1, 2)
            late = await world.brokers[1].produce(b"a", timeout_ms=50)
            assert late.error_code == ErrorCode.REQUEST_TIMED_OUT, "the follower may be in sync for all we know"
            world.clock.ahead_s += 100
            await world.brokers[1].isr.check_all()
            assert leader.high_watermark == 0
            world.brokers[1].store.trouble = None
            await world.until(lambda: leader.high_watermark == 1)

    run_virtually(run())
