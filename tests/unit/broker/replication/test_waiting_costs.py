"""What a produce keeps in memory while it waits for its replicas, and after: nothing of what it brought."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import TOPIC, world_of
from tests.virtual_time import run_virtually

from ottla.broker.handlers import produce
from ottla.broker.handlers.context import Call, Parked
from ottla.broker.handlers.producing.waiting import Acknowledgement
from ottla.broker.session import Session
from ottla.protocol.apis import ApiKey
from ottla.protocol.codec import decode, encode
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.records import NewRecord, encode_batch

VERSION = 9


class Frame(bytearray):
    """Received bytes, of which it can be seen that they are gone."""


def received() -> Frame:
    data = PartitionProduceData(index=0, records=encode_batch([NewRecord(None, b"a" * 1000, 0)]))
    topics = [TopicProduceData(name=TOPIC, partition_data=[data])]
    return Frame(encode(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics), VERSION))


@pytest.fixture
def garbage() -> Iterator[list[object]]:
    """What only the garbage collector could free ends here, when it is called."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def test_a_waiting_produce_keeps_no_bytes_and_leaves_no_circles(tmp_path: Path, garbage: list[object]) -> None:
    """The broker collects garbage seldom: a gigabyte of requests could hang on circles until then."""

    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2)
            await world.settled()
            world.cut(1, 2)
            frame = received()
            gone = weakref.ref(frame)
            call = Call(ApiKey.PRODUCE, VERSION, "client", Session("PLAINTEXT", "127.0.0.1"))
            waiting = produce.handle(world.brokers[1].broker, call, decode(ProduceRequest, VERSION, frame))
            assert isinstance(waiting, Parked)
            del frame
            assert gone() is None
            answered = asyncio.get_running_loop().create_future()
            waiting.when_resolved(lambda _: answered.set_result(waiting.resolved))
            world.mend(1, 2)
            assert await answered

    run_virtually(run())
    gc.collect()
    assert not [each for each in garbage if isinstance(each, Acknowledgement)]
