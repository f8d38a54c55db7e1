"""Cases that are made to lose records or to let replicas differ, each played through."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec.structs import replace
from tests.unit.broker.replication.replica_world import TOPIC, World, contents, world_of
from tests.virtual_time import run_virtually

from ottla.broker.controller.elections import rejoin
from ottla.cluster.documents import partition_document, partition_path
from ottla.cluster.store import Session, StoreError, Write
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState


def play(directory: Path, test: Callable[[World], Awaitable[None]], *nodes: int, **settings: str) -> None:
    async def run() -> None:
        async with world_of(directory, *nodes, **settings) as world:
            await test(world)

    run_virtually(run())


async def all_same(world: World) -> bytes:
    await world.settled()
    found = {contents(broker.partition()) for broker in world.brokers.values()}
    assert len(found) == 1
    return found.pop()


def follower_fetch(
    world: World, replica: int, offset: int, epoch: int, *, broker_epoch: int, last: int = 0
) -> FetchRequest:
    topic_id = world.shared.image.topics[TOPIC].topic_id
    asked = FetchPartition(
        partition=0, current_leader_epoch=epoch, fetch_offset=offset, last_fetched_epoch=last, log_start_offset=0,
        partition_max_bytes=2**20,
    )  # fmt: skip
    return FetchRequest(
        replica_state=ReplicaState(replica_id=replica, replica_epoch=broker_epoch), max_wait_ms=0, min_bytes=0,
        max_bytes=2**20, session_epoch=-1, topics=[FetchTopic(topic_id=topic_id, partitions=[asked])],
    )  # fmt: skip


def broker_epoch_of(world: World, node: int) -> int:
    return world.shared.image.brokers[node].epoch


def test_metadata_that_vanish_do_not_take_the_records_along(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"a")
        await world.settled()
        broker = world.brokers[2]
        before = contents(broker.partition())
        broker.store.change_session(Session.LOST)
        broker.partitions.load(replace(world.shared.image, topics={}, names_by_id={}))
        assert broker.partitions.find(TOPIC, 0) is None
        kept = [path for path in (tmp_path / "2").iterdir() if path.name.endswith("-stray")]
        assert [(path / f"{0:020d}.log").read_bytes() for path in kept] == [before]

    play(tmp_path, check, 1, 2, 3)


def test_an_answer_from_a_former_epoch_is_not_taken(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"a")
        await world.settled()
        # The fetch of 2 waits at 1, which goes on as an old leader that hears nothing any more.
        world.brokers[1].store.deaf = True
        world.cut(1, 3)
        world.elect(3, isr=(2, 3))
        old = await world.brokers[1].produce(b"only the old leader has this", acks=1)
        assert old.error_code == 0
        assert (await world.brokers[3].produce(b"b")).error_code == 0
        world.brokers[1].store.listen()
        world.mend(1, 3)
        data = await all_same(world)
        assert b"only the old" not in data

    play(tmp_path, check, 1, 2, 3)


def test_an_old_leader_acknowledges_nothing_that_is_lost(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"a")
        world.brokers[1].store.deaf = True
        waiting = [asyncio.ensure_future(world.brokers[1].produce(b"w%d" % n, timeout_ms=400)) for n in range(5)]
        world.elect(2, isr=(2, 3))
        results = await asyncio.gather(*waiting)
        assert (await world.brokers[2].produce(b"b")).error_code == 0
        world.brokers[1].store.listen()
        data = await all_same(world)
        for number, result in enumerate(results):
            assert result.error_code != 0 or data.count(b"w%d" % number) == 1

    play(tmp_path, check, 1, 2, 3)


def test_a_fetch_of_a_former_life_counts_for_nothing(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2)
        await world.brokers[1].produce(b"a")
        await world.settled()
        old_epoch = broker_epoch_of(world, 2)
        await world.stop(2)
        world.wipe(2)
        await world.start(2)
        world.cut(1, 2)
        answer = await world.brokers[1].ask(
            follower_fetch(world, 2, 1, 0, broker_epoch=old_epoch), FetchResponse, FetchRequest.MAX_VERSION
        )
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
        assert (await world.brokers[1].produce(b"b", timeout_ms=50)).error_code == ErrorCode.REQUEST_TIMED_OUT

    play(tmp_path, check, 1, 2)


def test_a_replica_that_was_taken_away_neither_counts_nor_gets_records(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"a")
        await world.settled()
        world.brokers[3].store.deaf = True
        world.assign(1, 2)
        await world.until(lambda: world.brokers[1].partition().replicas == (1, 2))
        answer = await world.brokers[1].ask(
            follower_fetch(world, 3, 1, 0, broker_epoch=broker_epoch_of(world, 3)),
            FetchResponse,
            FetchRequest.MAX_VERSION,
        )
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await world.brokers[1].produce(b"b")).error_code == 0
        assert world.brokers[3].partition().log.end_offset == 1
        assert 3 not in world.state().isr or world.brokers[1].partition().high_watermark == 2

    play(tmp_path, check, 1, 2, 3)


def test_a_topic_made_anew_while_a_follower_fetches_the_old_one(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2)
        for number in range(5):
            await world.brokers[1].produce(b"old %d" % number)
        await world.settled()
        world.brokers[2].store.deaf = True  # it goes on asking for the topic that is gone
        gone = world.shared.image.topics[TOPIC]
        world.shared.publish(world.shared.image.with_topics([], [TOPIC]))
        world.shared.versions = {p: v for p, v in world.shared.versions.items() if f"/{TOPIC}" not in p}
        world.create(1, 2)
        assert world.shared.image.topics[TOPIC].topic_id != gone.topic_id
        assert (await world.brokers[1].produce(b"new", timeout_ms=100)).error_code == ErrorCode.REQUEST_TIMED_OUT
        assert world.brokers[1].partition().high_watermark == 0, "the old topic's follower has nothing of the new one"
        world.brokers[2].store.listen()
        data = await all_same(world)
        assert b"old" not in data
        assert b"new" in data

    play(tmp_path, check, 1, 2)


def test_a_leader_that_restarts_with_a_shorter_log_than_its_followers_in_a_new_epoch(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        for number in range(4):
            await world.brokers[1].produce(b"%d" % number)
        await world.settled()
        await world.stop(1, clean=False)
        path = tmp_path / "1" / f"{TOPIC}-0" / f"{0:020d}.log"
        path.write_bytes(path.read_bytes()[:-10])
        # What the rules for coming back say: others lead, it is not in sync until it has caught up.
        world.elect(2, isr=(2, 3))
        await world.start(1)
        assert (await world.brokers[2].produce(b"4")).error_code == 0
        data = await all_same(world)
        assert all(b"%d" % number in data for number in range(5))
        await world.until(lambda: set(world.state().isr) == {1, 2, 3})

    play(tmp_path, check, 1, 2, 3)


def test_one_that_is_stopping_is_not_taken_in_again(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, 3)
        await world.brokers[1].produce(b"a")
        await world.settled()
        await world.brokers[3].fetchers.stop()
        state = world.state()
        path = partition_path(TOPIC, 0)
        document = partition_document(replace(state, isr=(1, 2)))
        world.shared.write([Write(path, document, world.shared.versions[path])])
        await world.brokers[1].isr.check_all()
        assert (await world.brokers[1].produce(b"b", timeout_ms=2000)).error_code == 0
        await world.brokers[1].isr.check_all()
        assert world.state().isr == (1, 2)

    play(tmp_path, check, 1, 2, 3)


def test_followers_do_not_run_ahead_of_a_log_that_moves(tmp_path: Path) -> None:
    """A follower's log that is swapped for its copy goes on where it was."""

    async def check(world: World) -> None:
        world.spare_directories = True
        for node in (1, 2):
            await world.start(node)
        world.create(1, 2)
        for number in range(20):
            await world.brokers[1].produce(b"%d" % number)
        await world.settled()
        for node in (1, 2):
            broker = world.brokers[node]
            logs, tp = broker.logs, broker.partition().tp
            move = logs.begin_move(tp, logs.dirs[1])
            while not move.is_complete:
                move.take_note()
                move.advance(broker.clock.now_ms())
                await asyncio.sleep(0)
            broker.partition().use_log(logs.finish_move(tp))
            logs.retire_old_directory(tp)
        for number in range(20, 40):
            assert (await world.brokers[1].produce(b"%d" % number)).error_code == 0
        world.elect(2)
        assert (await world.brokers[2].produce(b"40")).error_code == 0
        data = await all_same(world)
        assert all(b"%d" % number in data for number in range(41))

    play(tmp_path, check)


def test_a_flush_that_meets_a_move_is_a_flush_of_the_copy(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.spare_directories = True
        await world.start(1)
        world.create(1, flush_messages="1")
        broker = world.brokers[1]
        assert (await broker.produce(b"a")).error_code == 0
        partition, logs = broker.partition(), broker.logs
        old = partition.log
        move = logs.begin_move(partition.tp, logs.dirs[1])
        flushed = asyncio.ensure_future(broker.produce(b"b"))
        await asyncio.sleep(0)
        while not move.is_complete:
            move.take_note()
            move.advance(broker.clock.now_ms())
        partition.use_log(logs.finish_move(partition.tp))
        assert (await flushed).error_code == 0
        move.make_durable()
        logs.retire_old_directory(partition.tp)
        assert partition.log is not old
        await partition.flush_to(2)
        assert partition.log.recovery_point == 2
        assert (await broker.produce(b"c")).error_code == 0
        assert contents(partition).count(b"b") >= 1

    play(tmp_path, check)


def test_a_machine_that_crashed_and_is_back_before_its_session_ends_is_not_taken_for_complete(tmp_path: Path) -> None:
    """Its registration still stands, and the leader remembers that it had everything."""

    async def check(world: World) -> None:
        world.create(1, 2)
        for number in range(3):
            await world.brokers[1].produce(b"%d" % number)
        await world.settled()
        await world.brokers.pop(2).stop(clean=False)
        path = tmp_path / "2" / f"{TOPIC}-0" / f"{0:020d}.log"
        path.write_bytes(path.read_bytes()[:-10])
        come_back(world, 2)
        for _ in range(3):
            await world.brokers[1].isr.check_all()
            await asyncio.sleep(0.01)
        assert world.state().isr == (1,)
        assert (await world.brokers[1].produce(b"3", timeout_ms=2_000)).error_code == 0
        await world.start(2)
        data = await all_same(world)
        assert all(b"%d" % number in data for number in range(4))
        await world.until(lambda: set(world.state().isr) == {1, 2})

    play(tmp_path, check, 1, 2)


def test_nor_is_one_that_was_about_to_be_taken_in(tmp_path: Path) -> None:
    async def check(world: World) -> None:
        world.create(1, 2, isr=(1,))
        world.brokers[1].store.trouble = StoreError("not now")
        await world.brokers[1].produce(b"0")
        await world.until(lambda: world.brokers[2].partition().log.end_offset == 1)
        await world.brokers.pop(2).stop(clean=False)
        (tmp_path / "2" / f"{TOPIC}-0" / f"{0:020d}.log").write_bytes(b"")
        come_back(world, 2)
        world.brokers[1].store.trouble = None
        await world.brokers[1].isr.check_all()
        await world.until(lambda: world.brokers[1].isr._task is None)
        assert world.state().isr == (1,)
        await world.start(2)
        await world.until(lambda: set(world.state().isr) == {1, 2})
        assert b"0" in await all_same(world)

    play(tmp_path, check, 1, 2)


def come_back(world: World, node: int) -> None:
    """What a broker writes before it registers after a crash of its machine."""
    state = rejoin(world.state(), node)
    assert state is not None
    path = partition_path(TOPIC, 0)
    world.shared.write([Write(path, partition_document(state), world.shared.versions[path])])


def test_a_leaders_log_may_begin_inside_of_a_batch(tmp_path: Path) -> None:
    """A new follower is sent the whole batch, which begins before the first offset that it was told."""

    async def check(world: World) -> None:
        world.create(1, 2, isr=(1,))
        world.cut(1, 2)
        await world.brokers[1].produce(*(b"%d" % number for number in range(10)))
        await world.brokers[1].produce(b"later")
        world.brokers[1].partition().delete_records_before(4)
        world.mend(1, 2)
        data = await all_same(world)
        follower = world.brokers[2].partition()
        assert (follower.log.start_offset, follower.log.end_offset) == (4, 11)
        assert b"later" in data
        await world.until(lambda: set(world.state().isr) == {1, 2})
        await world.stop(2)
        await world.start(2)
        world.elect(2)
        assert (await world.brokers[2].produce(b"more")).error_code == 0
        await all_same(world)
        assert world.brokers[2].partition().log.start_offset == 4

    play(tmp_path, check, 1, 2)
