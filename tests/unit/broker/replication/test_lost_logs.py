"""Disks that fail: replicas without a log play no part, others take over, and no empty log passes for an old one."""

import asyncio
import uuid
from pathlib import Path

from tests.unit.broker.replication.replica_world import TOPIC, contents, world_of
from tests.unit.broker.storage.conftest import FaultyDisk
from tests.virtual_time import run_virtually

from ottla.broker.controller.lost_logs import leave_to_others
from ottla.broker.replication.partitions import Partitions
from ottla.broker.storage.manager import LogManager
from ottla.cluster.image import ClusterImage, ImageChange, PartitionImage, TopicImage
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.testing.clock import ManualClock


def test_others_go_on_when_the_leaders_disk_fails(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3)
            await world.brokers[1].produce(b"the first one")
            await world.settled()
            broken = world.brokers[1]
            waiting = asyncio.ensure_future(broken.produce(b"b"))
            broken.logs.dirs[0].fail(OSError("broken"))
            lost = broken.partitions.leave_failed()
            assert lost == [(TOPIC, 0)]
            assert (await waiting).error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
            await leave_to_others(broken.store, 1, broken.clock, lost)
            state = world.state()
            assert (state.leader, state.isr, state.leader_epoch) == (2, (2, 3), 1)
            assert (await broken.produce(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert (await world.brokers[2].produce(b"c")).error_code == 0
            world.brokers[1].partitions.load(world.shared.image)
            assert (await world.brokers[2].produce(b"d")).error_code == 0
            await world.until(
                lambda: world.brokers[3].partition().high_watermark == world.brokers[2].partition().log.end_offset
            )
            assert world.state().isr == (2, 3), "what has no disk is never in sync again"
            assert contents(world.brokers[2].partition()) == contents(world.brokers[3].partition())
            assert contents(world.brokers[2].partition()).count(b"the first one") == 1

    run_virtually(run())


def test_a_follower_with_a_broken_disk_leaves_the_in_sync_replicas(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1, 2, 3) as world:
            world.create(1, 2, 3)
            await world.brokers[1].produce(b"a")
            await world.settled()
            broken = world.brokers[2]
            broken.logs.dirs[0].fail(OSError("broken"))
            await leave_to_others(broken.store, 2, broken.clock, broken.partitions.leave_failed())
            assert (world.state().leader, world.state().isr) == (1, (1, 3))
            for _ in range(3):
                assert (await world.brokers[1].produce(b"b", timeout_ms=2_000)).error_code == 0
            assert world.state().isr == (1, 3)

    run_virtually(run())


def test_the_only_replica_keeps_what_it_has(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            world.create(1)
            await world.brokers[1].produce(b"a")
            broken = world.brokers[1]
            broken.logs.dirs[0].fail(OSError("broken"))
            await leave_to_others(broken.store, 1, broken.clock, broken.partitions.leave_failed())
            assert (world.state().leader, world.state().isr, world.state().leader_epoch) == (1, (1,), 0)
            assert (await broken.produce(b"b")).error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run_virtually(run())


def test_an_old_partition_does_not_begin_anew_beside_a_failed_disk(tmp_path: Path) -> None:
    config = LiveConfig(settings_from({"log.dirs": f"{tmp_path}/one,{tmp_path}/two", "node.id": "1"}))
    clock = ManualClock()
    old = TopicImage("old", uuid.uuid4(), (PartitionImage(1, 0, (1,), (1,)), PartitionImage(1, 0, (1,), (1,))))
    new = TopicImage("new", uuid.uuid4(), (PartitionImage(1, 0, (1,), (1,)),))
    image = ClusterImage().with_topics([old])

    async def run() -> None:
        logs = LogManager(config.static, config.topic, clock)
        logs.open()
        Partitions(1, logs, config, clock).load(image)
        assert all(len(directory.logs) == 1 for directory in logs.dirs)
        logs.close()
        logs = LogManager(config.static, config.topic, clock)
        logs.dirs[1].partition_directories = _broken  # type: ignore[method-assign]
        logs.open()
        assert logs.dirs[1].failure is not None
        partitions = Partitions(1, logs, config, clock)
        partitions.load(image)
        assert len(logs.all()) == 1
        found = [code_of(partitions, "old", number) for number in (0, 1)]
        assert sorted(found, key=str) == sorted([None, ErrorCode.KAFKA_STORAGE_ERROR], key=str)
        lost = partitions.leave_failed()
        assert [code_of(partitions, *place) for place in lost] == [ErrorCode.KAFKA_STORAGE_ERROR]
        partitions.apply(ImageChange(image, image.with_topics([new]), (new,)))
        assert code_of(partitions, "new", 0) is None, "a new one has nothing to lose"
        logs.abandon()

    run_virtually(run())


def test_a_partition_that_found_a_full_disk_is_created_later(tmp_path: Path) -> None:
    async def run() -> None:
        async with world_of(tmp_path, 1) as world:
            broker = world.brokers[1]
            disk = FaultyDisk()
            broker.logs.dirs[0].environment.disk = disk
            disk.room = 0
            world.create(1, partitions=3)
            assert (await broker.produce(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            await broker.partitions.retry_missing()
            assert len(broker.partitions) == 0
            disk.room = None
            await broker.partitions.retry_missing()
            assert len(broker.partitions) == 3
            assert (await broker.produce(b"a")).error_code == 0

    run_virtually(run())


def _broken() -> dict[TopicPartition, str]:
    raise OSError("broken")


def code_of(partitions: Partitions, topic: str, number: int) -> ErrorCode | None:
    try:
        partitions.get((topic, number))
    except ApiError as error:
        return error.code
    return None
