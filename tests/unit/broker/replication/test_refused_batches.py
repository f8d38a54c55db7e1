"""A batch that was refused for a while is not overtaken by those that were sent behind it."""

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.replication.replica_world import World, world_of
from tests.virtual_time import run_virtually

from ottla.broker.replication.refused_batches import PATIENCE_SECONDS, PRODUCERS_MAX, RefusedBatches
from ottla.broker.storage.producer_state import SEQUENCE_MAX, ProducerState
from ottla.model.errors import ErrorCode
from ottla.protocol.records import NewRecord, encode_batch, read_header

PRODUCER = 7


def batch(sequence: int, *, epoch: int = 0, producer: int = PRODUCER) -> bytearray:
    return encode_batch(
        [NewRecord(None, b"%d" % sequence, 1)], producer_id=producer, producer_epoch=epoch, base_sequence=sequence
    )


class Leader:
    """What a log knows of producers, and what was refused."""

    def __init__(self, *appended: int) -> None:
        self.producers = ProducerState()
        self.refused = RefusedBatches()
        self.now_s = 0.0
        for sequence in appended:
            self.append(sequence)

    def append(self, sequence: int, *, epoch: int = 0) -> None:
        self.producers.update(read_header(batch(sequence, epoch=epoch)), 0, 1)

    def refuse(self, sequence: int, *, epoch: int = 0) -> None:
        self.refused.note(batch(sequence, epoch=epoch), self.producers.entries, self.now_s)

    def overtakes(self, sequence: int, *, epoch: int = 0) -> bool:
        return self.refused.overtakes(batch(sequence, epoch=epoch), self.producers.entries, self.now_s)


@pytest.mark.parametrize("appended", [(), (3, 4)])
def test_what_was_sent_behind_waits_until_the_first_has_come(appended: tuple[int, ...]) -> None:
    """Also of a producer that nothing is known of, whose first sequence would be believed."""
    leader = Leader(*appended)
    leader.refuse(5)
    leader.refuse(6)
    assert leader.overtakes(7)
    assert not leader.overtakes(5)
    leader.append(5)
    assert not leader.overtakes(6)
    assert not leader.refused, "nothing is waited for any more"


def test_a_retry_of_what_is_in_the_log_is_no_gap() -> None:
    leader = Leader(3, 4)
    leader.refuse(3)
    leader.refuse(4)
    assert not leader.refused
    leader.refuse(5)
    assert not leader.overtakes(4)
    assert leader.overtakes(6)


def test_a_second_refusal_is_a_new_beginning() -> None:
    leader = Leader(3)
    leader.refuse(4)
    leader.append(4)
    leader.refuse(5)
    assert leader.overtakes(6)


def test_the_first_one_counts_in_whatever_order_they_were_refused() -> None:
    leader = Leader(3)
    leader.refuse(6)
    leader.refuse(5)
    assert leader.overtakes(6)
    assert not leader.overtakes(5)


def test_what_was_given_up_is_not_waited_for() -> None:
    leader = Leader(3)
    leader.refuse(4)
    leader.now_s += PATIENCE_SECONDS + 1
    assert not leader.overtakes(5)
    leader.refuse(4)
    assert not leader.overtakes(0, epoch=1), "a new epoch begins anew"
    leader.refuse(4)
    leader.refuse(0, epoch=1)
    assert leader.overtakes(1, epoch=1)


def test_sequences_begin_again_after_the_last() -> None:
    leader = Leader(SEQUENCE_MAX - 1)
    leader.refuse(SEQUENCE_MAX)
    assert leader.overtakes(0)
    leader.append(SEQUENCE_MAX)
    assert not leader.overtakes(0)


def test_producers_without_sequences_and_bytes_that_are_no_batch_pass() -> None:
    refused = RefusedBatches()
    plain = encode_batch([NewRecord(None, b"", 1)])
    for records in (plain, bytearray(b"\xff" * 10), bytearray(b"\xff" * 100)):
        refused.note(records, {}, 0.0)
        assert not refused
        assert not refused.overtakes(records, {}, 0.0)


def test_the_oldest_are_forgotten_when_there_are_too_many() -> None:
    refused = RefusedBatches()
    for producer in range(PRODUCERS_MAX + 1):
        refused.note(batch(0, producer=producer), {}, 0.0)
    assert not refused.overtakes(batch(1, producer=0), {}, 0.0)
    assert refused.overtakes(batch(1, producer=1), {}, 0.0)


def test_a_leader_with_too_few_replicas_keeps_the_order(tmp_path: Path) -> None:
    """What it appended and could not acknowledge comes again too, and is found to be there."""

    async def run() -> None:
        async with world_of(tmp_path, 1, 2) as world:
            world.create(1, 2, min_insync_replicas="2")
            leader = world.brokers[1]
            assert (await leader.produce(batch=batch(0))).error_code == 0
            await world.settled()
            world.cut(1, 2)
            waiting = asyncio.ensure_future(leader.produce(batch=batch(1), timeout_ms=60_000))
            await world.until(lambda: leader.partition().log.end_offset == 2)
            world.clock.ahead_s += 11
            await leader.isr.check_all()
            assert (await waiting).error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            for sequence in (1, 2, 3):
                assert (await leader.produce(batch=batch(sequence))).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            await _mend(world)
            assert (await leader.produce(batch=batch(4))).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            answers = [await leader.produce(batch=batch(sequence)) for sequence in (1, 2, 3, 4)]
            assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 1), (0, 2), (0, 3), (0, 4)]

    run_virtually(run())


async def _mend(world: World) -> None:
    world.mend(1, 2)
    await world.until(lambda: world.brokers[1].partition().enough_replicas)
    await world.settled()
