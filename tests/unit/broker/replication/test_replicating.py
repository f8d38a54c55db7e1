"""Records get from leaders to followers, and what is acknowledged with acks=all is on every in-sync replica."""

import asyncio
import logging
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import World, contents, world_of
from tests.virtual_time import run_virtually

from ottla.cluster.store import Write
from ottla.model.errors import ErrorCode


def test_acks_all_is_answered_when_the_followers_have_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3)
            answer = await world.brokers[1].produce(b"a", b"b")
            assert (answer.error_code, answer.base_offset) == (0, 0)
            assert [world.brokers[n].partition().log.end_offset for n in (1, 2, 3)] == [2, 2, 2]
            assert world.brokers[1].partition().high_watermark == 2
            await world.settled()
            assert len({contents(world.brokers[n].partition()) for n in (1, 2, 3)}) == 1

    run_virtually(run())


def test_a_follower_refuses_clients(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            assert (await world.brokers[2].produce(b"a")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    run_virtually(run())


def test_a_cut_follower_holds_acks_all_up_until_it_is_back_or_time_is_up(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            world.cut(1, 2)
            late = await world.brokers[1].produce(b"b", timeout_ms=30)
            assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
            leader = world.brokers[1].partition()
            assert (leader.log.end_offset, leader.high_watermark) == (2, 1)
            waiting = asyncio.ensure_future(world.brokers[1].produce(b"c"))
            await world.until(lambda: leader.log.end_offset == 3)
            assert (await world.brokers[1].produce(b"d", acks=1)).base_offset == 3, "the one who waits holds up nobody"
            assert not waiting.done()
            world.mend(1, 2)
            assert (await waiting).error_code == 0
            await world.settled()

    run_virtually(run())


def test_who_waits_is_told_when_the_leader_is_deposed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            world.cut(1, 2)
            waiting = asyncio.ensure_future(world.brokers[1].produce(b"b"))
            await world.until(lambda: world.brokers[1].partition().log.end_offset == 2)
            world.elect(2)
            assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            world.mend(1, 2)
            await world.settled()
            assert world.brokers[1].partition().log.end_offset == 1, "what was never acknowledged is cut off"

    with caplog.at_level(logging.INFO):
        run_virtually(run())
    assert "Truncating to offset 1 (log end offset 2)" in caplog.text


def test_a_broker_that_was_replaced_by_an_empty_one_fills_itself(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3, partitions=2)
            for number in range(20):
                await world.brokers[1].produce(b"%d" % number, number=number % 2)
            await world.stop(3)
            world.wipe(3)
            world.elect(1, (1, 2), number=0)
            world.elect(1, (1, 2), number=1)
            await world.brokers[1].produce(b"x")
            await world.start(3)
            await world.settled(0)
            await world.settled(1)
            await world.until(lambda: 3 in world.state(0).isr and 3 in world.state(1).isr)
            assert contents(world.brokers[3].partition(0)) == contents(world.brokers[1].partition(0))

    run_virtually(run())


def test_a_follower_behind_the_leaders_first_record_begins_anew_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, segment_bytes="1048576")
            await world.brokers[1].produce(b"a")
            await world.stop(2)
            world.elect(1, (1,))
            leader = world.brokers[1].partition()
            for _ in range(30):
                await world.brokers[1].produce(b"b")
            leader.delete_records_before(25)
            await world.start(2)
            await world.settled()
            follower = world.brokers[2].partition()
            assert (follower.log.start_offset, follower.log.end_offset) == (25, 31)
            assert (await world.brokers[1].produce(b"c")).error_code == 0
            await world.until(lambda: world.state().isr == (1, 2))

    run_virtually(run())


def test_replicas_that_move_away_are_removed_and_new_ones_fill_themselves(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            world.assign(1, 2, 3)
            await world.until(lambda: set(world.state().isr) == {1, 2, 3})
            world.assign(1, 3)
            assert world.brokers[2].partitions.find("t", 0) is None
            assert not world.brokers[2].logs.all()
            await world.brokers[1].produce(b"b", acks=1)
            await world.until(lambda: world.brokers[3].partition().log.end_offset == 2)

    run_virtually(run())


def test_a_committed_record_stays_committed_for_the_next_leader(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a", b"b")
            await world.settled()
            await world.stop(1)
            world.elect(2, (2,))
            leader = world.brokers[2].partition()
            assert (leader.high_watermark, leader.log.end_offset) == (2, 2)
            assert leader.log.leader_epochs.entries() == [(0, 0), (1, 2)], "an epoch is noted before its first record"

    run_virtually(run())


def test_high_watermarks_outlive_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a", b"b")
            await world.settled()
            await world.stop(2)
            world.cut(1, 2)
            again = await world.start(2)
            assert again.partition().high_watermark == 2

    run_virtually(run())


def test_a_topic_made_again_under_its_name_does_not_inherit_a_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"old")
            await world.stop(2)
            delete(world)
            world.create(1, 2)
            await world.brokers[1].produce(b"new", acks=1)
            await world.start(2)
            await world.settled()
            assert contents(world.brokers[1].partition()) == contents(world.brokers[2].partition())

    run_virtually(run())


def test_a_partition_that_comes_newly_under_a_leader_does_not_wait_for_the_fetch_under_way(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, replica_fetch_wait_max_ms="60000") as world:
            world.create(1, 2, partitions=2)
            await world.brokers[1].produce(b"a", number=0)
            await world.brokers[1].produce(b"a", number=1)
            world.elect(2, number=1)
            await world.brokers[2].produce(b"b", number=1)
            await asyncio.sleep(0.01)  # the follower's fetch from broker 1 waits, for a minute if nothing happens
            world.elect(1, number=1)
            assert (await world.brokers[1].produce(b"c", number=1)).error_code == 0

    run_virtually(run())


def test_who_waits_goes_on_waiting_when_the_leader_stays_and_only_its_epoch_changes(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            world.cut(1, 2)
            waiting = asyncio.ensure_future(world.brokers[1].produce(b"b"))
            await world.until(lambda: world.brokers[1].partition().log.end_offset == 2)
            world.elect(1, (1, 2))
            assert not waiting.done()
            world.mend(1, 2)
            assert (await waiting).error_code == 0

    run_virtually(run())


def test_fetchers_can_become_more_and_fewer_while_they_work(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, partitions=8)
            two = world.brokers[2]
            for fetchers in ("4", "1", "3"):
                two.config.update_broker({"num.replica.fetchers": fetchers}, {})
                two.fetchers.reconfigure()
                for number in range(8):
                    assert (await world.brokers[1].produce(b"a", number=number)).error_code == 0
                homes = {id(two.fetchers.home_of(two.partition(number))) for number in range(8)}
                assert len(homes) == int(fetchers)

    run_virtually(run())


def test_a_leader_that_comes_back_is_not_waited_for_longer_than_needed(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, replica_fetch_backoff_ms="60000") as world:
            world.create(1, 2)
            await world.brokers[1].produce(b"a")
            await world.settled()
            world.cut(1, 2)
            attempts = len(world.calls)
            await world.until(lambda: len(world.calls) > attempts + 5)  # the pauses have become long
            world.mend(1, 2)
            world.elect(1, (1, 2))
            assert (await world.brokers[1].produce(b"b", timeout_ms=2_000)).error_code == 0

    run_virtually(run())


def delete(world: World) -> None:
    shared = world.shared
    shared.write([Write(path, None, version) for path, version in shared.versions.items() if "/topics/" in path])
