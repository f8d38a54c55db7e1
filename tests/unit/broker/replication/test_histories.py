"""Logs whose leaders change in every way, step by step: histories that part are joined, nothing acknowledged is lost.

Every step is one thing that can happen to a cluster: an append, one fetch of one follower, an election that one broker
or the other does not hear of yet, a change of the in-sync replicas, a broker that stops and comes back. After all of
them the replicas must agree, and have every record that was acknowledged.
"""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.broker.replication.replica_world import TOPIC, World, WorldBroker, contents
from tests.virtual_time import run_virtually

from ottla.broker.replication.partition import Partition
from ottla.cluster.documents import partition_document, partition_path
from ottla.cluster.image import PartitionImage
from ottla.cluster.store import VersionConflict, Write
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.records import NewRecord, encode_batch, iterate_batches

BROKERS = (1, 2, 3)
LAG_S = 11.0

STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 3)),
    st.tuples(st.just("fetch"), st.sampled_from(BROKERS)),
    st.tuples(st.just("fetch"), st.sampled_from(BROKERS)),
    st.tuples(st.just("elect"), st.sampled_from(BROKERS)),
    st.tuples(st.just("deaf"), st.sampled_from(BROKERS)),
    st.tuples(st.just("listen"), st.sampled_from(BROKERS)),
    st.tuples(st.just("lag"), st.just(0)),
    st.tuples(st.just("in sync"), st.sampled_from(BROKERS)),
    st.tuples(st.just("restart"), st.sampled_from(BROKERS)),
    st.tuples(st.just("lost answer"), st.sampled_from(BROKERS)),
)


class History:
    def __init__(self, world: World) -> None:
        self.world = world
        self.acknowledged: dict[int, int] = {}
        """The CRC of each acknowledged batch by its offset: it covers the records, wherever they lie."""
        self.doubled: list[int] = []
        """Offsets that were acknowledged with one batch and then with another."""
        self._count = 0

    async def step(self, what: str, argument: int) -> None:
        brokers = self.world.brokers
        if what == "append":
            for broker in brokers.values():  # an old leader that has not heard of the new one appends too
                if broker.partition().is_leader:
                    self._append(broker.partition(), argument)
        elif what == "fetch":
            await self.fetch(brokers[argument])
        elif what == "lost answer":
            await self.fetch(brokers[argument], arrives=False)
        elif what == "elect" and argument in self.world.state().isr:
            self.world.elect(argument, self.world.state().isr)
            self.check_leader()
        elif what == "deaf":
            brokers[argument].store.deaf = True
        elif what == "listen":
            brokers[argument].store.listen()
        elif what == "lag":
            self.world.clock.ahead_s += LAG_S
        elif what == "in sync":
            await self._change_in_sync(brokers[argument])
        elif what == "restart":
            await self.world.stop(argument)
            await self.world.start(argument, at_rest=True)

    def _append(self, partition: Partition, count: int) -> None:
        self._count += 1
        now_ms = self.world.clock.now_ms()
        batch = encode_batch([NewRecord(None, b"%d" % self._count, now_ms)] * count)
        try:
            result = partition.append(batch, now_ms)
        except ApiError as error:
            if error.code != ErrorCode.NOT_ENOUGH_REPLICAS:
                raise
            return
        crc = next(iterate_batches(batch))[1].crc

        def acknowledge(error: ApiError | None) -> None:
            if error is None and self.acknowledged.setdefault(result.base_offset, crc) != crc:
                self.doubled.append(result.base_offset)

        try:
            if partition.on_committed(result.last_offset + 1, acknowledge) is None:
                acknowledge(None)
        except ApiError:
            return

    async def fetch(self, broker: WorldBroker, *, arrives: bool = True) -> None:
        """One fetch of a follower, whatever the leader then says, or with an answer that gets lost."""
        partition = broker.partition()
        if not partition.is_follower or partition.leader not in self.world.brokers:
            return
        home = broker.fetchers.home_of(partition)
        if not home.has_work:
            home.add(partition)
        request = home.next_request()
        request.max_wait_ms = 0
        answer = await self.world.brokers[partition.leader].ask(request, FetchResponse, request.MAX_VERSION)
        if not arrives:
            home.forget_session()
            return
        try:
            await home.handle_response(answer)
        except ApiError:
            home.forget_session()

    async def _change_in_sync(self, broker: WorldBroker) -> None:
        partition = broker.partition()
        isr = partition.wanted_isr()
        if isr is None:
            return
        partition.isr_change_begins(isr)
        path = partition_path(TOPIC, 0)
        state = PartitionImage(partition.leader, partition.leader_epoch, partition.replicas, isr)
        try:
            await broker.store.commit([Write(path, partition_document(state), broker.store.version(path))])
        except VersionConflict:
            partition.isr_change_failed()

    def check_leader(self) -> None:
        """Whoever is leader has everything that was acknowledged."""
        assert not self.doubled, f"acknowledged twice with different records: {self.doubled}"
        leader = self.world.brokers[self.world.state().leader].partition()
        found = batches(leader)
        missing = {offset for offset, crc in self.acknowledged.items() if found.get(offset) != crc}
        assert not missing, f"acknowledged records at {sorted(missing)} are lost"

    async def heal(self) -> None:
        for broker in self.world.brokers.values():
            broker.store.listen()
        for _ in range(30):
            for broker in self.world.brokers.values():
                await self.fetch(broker)


def batches(partition: Partition) -> dict[int, int]:
    return {header.base_offset: header.crc for _, header in iterate_batches(contents(partition))}


def run_history(steps: list[tuple[str, int]], then: Callable[[History], None]) -> None:
    async def run(directory: Path) -> None:
        world = World(directory)
        for node in BROKERS:
            await world.start(node, at_rest=True)
        world.create(*BROKERS, min_insync_replicas="1", segment_bytes="1048576")
        history = History(world)
        try:
            for what, argument in steps:
                await history.step(what, argument)
            await history.heal()
            then(history)
        finally:
            for broker in world.brokers.values():
                await broker.stop()

    directory = Path(tempfile.mkdtemp())
    try:
        run_virtually(run(directory))
    finally:
        shutil.rmtree(directory)


def agrees(history: History) -> None:
    history.check_leader()
    world = history.world
    logs = {node: contents(world.brokers[node].partition()) for node in BROKERS}
    assert len(set(logs.values())) == 1, {node: sorted(batches(world.brokers[node].partition())) for node in logs}
    entries = [world.brokers[node].partition().log.leader_epochs.entries() for node in BROKERS]
    last = max(batches(world.brokers[1].partition()), default=-1)
    assert [[e for e in each if e[1] <= last] for each in entries] == [[e for e in entries[0] if e[1] <= last]] * 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=40))
def test_replicas_agree_and_nothing_acknowledged_is_lost(steps: list[tuple[str, int]]) -> None:
    run_history(steps, agrees)


def test_a_leader_that_did_not_hear_of_its_end_loses_only_what_it_never_acknowledged() -> None:
    steps = [
        ("append", 1), ("fetch", 2), ("fetch", 3), ("fetch", 2), ("fetch", 3), ("deaf", 1), ("elect", 2),
        ("append", 2), ("append", 1), ("fetch", 3), ("append", 1), ("fetch", 3), ("elect", 3), ("append", 3),
    ]  # fmt: skip
    run_history(steps, agrees)


def test_reigns_without_records_do_not_confuse_anyone() -> None:
    steps = [
        ("append", 1), ("elect", 2), ("elect", 3), ("elect", 1), ("append", 1), ("elect", 2), ("deaf", 2), ("elect", 3),
        ("append", 1), ("append", 1), ("elect", 1), ("append", 1),
    ]  # fmt: skip
    run_history(steps, agrees)


# Each of the following loses or doubles records if one rule is broken; which one is said in its words.
ALL_HAVE_ONE = [("append", 1), ("fetch", 2), ("fetch", 3), ("fetch", 2), ("fetch", 3)]
TWO_HAS_MORE = [("append", 1), ("fetch", 2), ("fetch", 2)]


def test_who_may_have_been_taken_in_must_have_what_is_acknowledged() -> None:
    steps = [
        *ALL_HAVE_ONE, *TWO_HAS_MORE, ("lag", 0), ("in sync", 1), ("fetch", 3), ("fetch", 3), ("deaf", 1),
        ("in sync", 1), ("lag", 0), *TWO_HAS_MORE, ("elect", 3),
    ]  # fmt: skip
    run_history(steps, agrees)


def test_who_is_being_left_out_counts_until_that_is_written() -> None:
    steps = [*ALL_HAVE_ONE, *TWO_HAS_MORE, ("deaf", 1), ("elect", 3), ("lag", 0), ("in sync", 1), ("append", 1)]
    run_history(steps, agrees)


def test_nobody_joins_who_misses_what_the_leader_found() -> None:
    steps = [
        *ALL_HAVE_ONE, *TWO_HAS_MORE, ("lag", 0), ("in sync", 1), ("elect", 2), ("lost answer", 3), ("in sync", 2),
        ("elect", 3),
    ]  # fmt: skip
    run_history(steps, agrees)


def test_a_follower_goes_back_before_an_epoch_that_its_leader_does_not_know() -> None:
    steps = [
        *ALL_HAVE_ONE, ("elect", 2), ("append", 1), ("deaf", 2), ("elect", 3), ("append", 2), ("elect", 2),
        ("listen", 2), ("append", 1),
    ]  # fmt: skip
    run_history(steps, agrees)
