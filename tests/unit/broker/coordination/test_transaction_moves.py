"""Transactions whose coordinator moves, with partitions far away: one outcome each, the one that was promised."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable

import pytest
from tests.virtual_time import LoopClock, run_virtually

from ottla.broker.coordination.markers import DONE_ANYWAY, Marker
from ottla.broker.coordination.transaction_runtime import TransactionCoordinator
from ottla.broker.coordination.transactions.events import End, Init, Step, TransactionalWrite
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import TopicPartition
from ottla.protocol.transaction_records import TransactionState

from .replicated_log import Replica, ReplicatedLog

NONE = ErrorCode.NONE
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
TIMEOUT_MS = 20_000
RETRIED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)


class DataPartition:
    """What a partition does with transactional records and markers, as far as outcomes are concerned."""

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}
        self.coordinator_epochs: dict[int, int] = {}
        self.open: dict[int, set[int]] = {}
        self.markers_seen: dict[int, int] = {}
        self.outcomes: dict[int, set[bool]] = {}

    def write(self, producer_id: int, epoch: int, token: int) -> ErrorCode:
        if self.epochs.get(producer_id, -1) > epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        self.epochs[producer_id] = epoch
        self.open.setdefault(producer_id, set()).add(token)
        return NONE

    def mark(self, marker: Marker) -> ErrorCode:
        producer_id = marker.producer_id
        known = self.epochs.get(producer_id, -1)
        is_for_records_before = marker.transaction_version >= 2 and producer_id in self.open
        if known > marker.producer_epoch or (is_for_records_before and known == marker.producer_epoch):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if self.coordinator_epochs.get(producer_id, -1) > marker.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        self.epochs[producer_id] = marker.producer_epoch
        self.coordinator_epochs[producer_id] = marker.coordinator_epoch
        self.markers_seen[producer_id] = self.markers_seen.get(producer_id, 0) + 1
        for token in self.open.pop(producer_id, ()):
            self.outcomes.setdefault(token, set()).add(marker.commit)
        return NONE


class Network:
    """Implements MarkerWriter between a coordinator and partitions elsewhere. Everything that can go wrong does."""

    def __init__(self, partitions: dict[TopicPartition, DataPartition], chance: random.Random) -> None:
        self._partitions = partitions
        self._chance = chance
        self.is_well = False

    def write(self, marker: Marker, partition: TopicPartition) -> Awaitable[None] | None:
        does = "deliver" if self.is_well else self._chance.choice(["deliver", "refuse", "lose", "lose answer", "twice"])
        if does == "refuse":
            raise ApiError(ErrorCode.LEADER_NOT_AVAILABLE)
        return asyncio.ensure_future(self._deliver(does, marker, self._partitions[partition]))

    async def _deliver(self, does: str, marker: Marker, partition: DataPartition) -> None:
        await asyncio.sleep(self._chance.expovariate(3))
        if does == "lose":
            raise ApiError(ErrorCode.NETWORK_EXCEPTION)
        if self._chance.random() < 0.2 and not self.is_well:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        code = partition.mark(marker)
        if does == "twice" and marker.transaction_version >= 2:
            # A copy that comes late: whatever happened meanwhile, it may do nothing.
            asyncio.get_running_loop().call_later(self._chance.expovariate(0.2), partition.mark, marker)
        await asyncio.sleep(self._chance.expovariate(3))
        if does == "lose answer":
            raise ApiError(ErrorCode.NETWORK_EXCEPTION)
        if code is not NONE and code not in DONE_ANYWAY:
            raise ApiError(code)


class Brokers:
    """A transaction coordinator on each of several brokers, and data partitions on others."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.log = ReplicatedLog(3)
        self.partitions = {partition: DataPartition() for partition in PARTITIONS}
        self.network = Network(self.partitions, self.chance)
        self.settings = BrokerSettings()
        self._ids = itertools.count(100)
        self.coordinators = [
            TransactionCoordinator(replica, lambda: self.settings, LoopClock(), self.network, self._allocate)
            for replica in self.log.replicas
        ]
        for coordinator in self.coordinators:
            coordinator.start()

    async def _allocate(self) -> int:
        await asyncio.sleep(self.chance.uniform(0, 0.01))
        return next(self._ids)

    @property
    def leader(self) -> TransactionCoordinator:
        return self.coordinators[self.log.leader.broker_id]

    def elect(self, broker_id: int, kept: int = 0) -> None:
        self.log.elect(broker_id, kept)
        self.coordinators[broker_id].refresh()

    def tell(self, replica: Replica) -> None:
        self.log.tell(replica)
        self.coordinators[replica.broker_id].refresh()

    async def replicate_always(self, often: float = 20) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(often))
            self.log.replicate()

    async def abort_timed_out_always(self) -> None:
        while True:
            await asyncio.sleep(1)
            for coordinator in self.coordinators:
                await coordinator.abort_timed_out()

    def shutdown(self) -> None:
        for coordinator in self.coordinators:
            coordinator.shutdown()


def outcomes(brokers: Brokers, token: int) -> set[bool]:
    return set().union(*(partition.outcomes.get(token, set()) for partition in brokers.partitions.values()))


async def ensure(coordinator: TransactionCoordinator, step: Step, partition: TopicPartition) -> ErrorCode:
    write = TransactionalWrite("x", step.producer_id, step.producer_epoch, [partition], add=True)
    answer = coordinator.ensure_partitions(write)
    return (answer if isinstance(answer, dict) else await answer)[partition]


async def wait_for(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(600):
        while not condition():  # noqa: ASYNC110 - time is virtual, and the condition is the state of others
            await asyncio.sleep(0.05)


def test_a_decided_transaction_is_finished_by_the_next_coordinator() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        replicating = asyncio.ensure_future(brokers.replicate_always())
        step = await brokers.leader.init(Init("x", TIMEOUT_MS))
        for partition in PARTITIONS:
            assert await ensure(brokers.leader, step, partition) is NONE
            assert brokers.partitions[partition].write(step.producer_id, step.producer_epoch, 1) is NONE
        ended = await brokers.leader.end(End("x", step.producer_id, step.producer_epoch, True, 2))
        assert ended.error is NONE
        old = brokers.log.leader
        brokers.elect(1)
        await wait_for(lambda: all(not partition.open for partition in brokers.partitions.values()))
        assert outcomes(brokers, 1) == {True}
        await brokers.leader.wait_loaded()
        await wait_for(lambda: _state(brokers) is TransactionState.COMPLETE_COMMIT)
        # The old one still believes to be at it; its markers and its notes go nowhere.
        brokers.tell(old)
        assert {partition.coordinator_epochs[step.producer_id] for partition in brokers.partitions.values()} == {1}
        replicating.cancel()
        brokers.shutdown()

    run_virtually(scenario())


def test_an_open_transaction_goes_on_and_keeps_its_timeout() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        brokers.network.is_well = True
        replicating = asyncio.ensure_future(brokers.replicate_always())
        step = await brokers.leader.init(Init("x", TIMEOUT_MS))
        assert await ensure(brokers.leader, step, PARTITIONS[0]) is NONE
        await asyncio.sleep(12)
        old = brokers.log.leader
        brokers.elect(2)
        brokers.tell(old)
        await brokers.leader.wait_loaded()
        assert await ensure(brokers.leader, step, PARTITIONS[1]) is NONE
        await asyncio.sleep(9)
        await brokers.leader.abort_timed_out()
        await wait_for(lambda: _state(brokers) is TransactionState.COMPLETE_ABORT)
        replicating.cancel()
        brokers.shutdown()

    run_virtually(scenario())


def test_a_decision_that_is_not_committed_has_no_markers() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        brokers.network.is_well = True
        replicating = asyncio.ensure_future(brokers.replicate_always())
        step = await brokers.leader.init(Init("x", TIMEOUT_MS))
        assert await ensure(brokers.leader, step, PARTITIONS[0]) is NONE
        brokers.partitions[PARTITIONS[0]].write(step.producer_id, step.producer_epoch, 1)
        replicating.cancel()
        ending = asyncio.ensure_future(brokers.leader.end(End("x", step.producer_id, step.producer_epoch, True, 2)))
        await asyncio.sleep(5)
        old = brokers.log.leader
        brokers.elect(1)  # without the decision
        await asyncio.sleep(5)
        assert brokers.partitions[PARTITIONS[0]].open
        brokers.tell(old)
        with pytest.raises(ApiError) as refusal:
            await ending
        assert refusal.value.code is ErrorCode.NOT_COORDINATOR
        replicating = asyncio.ensure_future(brokers.replicate_always())
        await brokers.leader.wait_loaded()
        aborted = await brokers.leader.end(End("x", step.producer_id, step.producer_epoch, False, 2))
        assert aborted.error is NONE
        await wait_for(lambda: _state(brokers) is TransactionState.COMPLETE_ABORT)
        assert outcomes(brokers, 1) == {False}
        replicating.cancel()
        brokers.shutdown()

    run_virtually(scenario())


def test_nobody_is_told_that_a_partition_is_in_before_that_is_committed() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        replicating = asyncio.ensure_future(brokers.replicate_always())
        step = await brokers.leader.init(Init("x", TIMEOUT_MS))
        replicating.cancel()
        adding = asyncio.ensure_future(ensure(brokers.leader, step, PARTITIONS[0]))
        await asyncio.sleep(0.1)
        verified = brokers.leader.ensure_partitions(
            TransactionalWrite("x", step.producer_id, step.producer_epoch, [PARTITIONS[0]], add=False)
        )
        assert not isinstance(verified, dict)
        old = brokers.log.leader
        brokers.elect(1)
        brokers.tell(old)
        assert await adding is ErrorCode.NOT_COORDINATOR
        assert await verified == {PARTITIONS[0]: ErrorCode.NOT_COORDINATOR}
        brokers.shutdown()

    run_virtually(scenario())


def _state(brokers: Brokers) -> TransactionState | None:
    value = brokers.leader.describe("x")
    return None if value is None else value.state


# Everything at once


class Producer:
    """Runs one transaction after the other; asks again, and elsewhere, as clients do. Dies when it is fenced."""

    def __init__(self, world: "Chaos", version: int) -> None:
        self.world = world
        self.version = version
        self.believed = 0
        self.ids = Step()

    @property
    def coordinator(self) -> TransactionCoordinator:
        return self.world.brokers.coordinators[self.believed]

    async def insist(self, ask: Callable[[], Awaitable[Step]]) -> Step:
        """Ask until there is an answer that is one."""
        while True:
            try:
                step = await ask()
                if step.error not in RETRIED:
                    return step
                code = step.error
            except ApiError as error:
                code = error.code
            if code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                chance, log = self.world.brokers.chance, self.world.brokers.log
                self.believed = chance.choice([log.leader.broker_id, 0, 1, 2])
            await asyncio.sleep(self.world.brokers.chance.uniform(0.02, 0.2))

    async def run(self) -> None:
        self.ids = await self.insist(lambda: self.coordinator.init(Init("x", TIMEOUT_MS)))
        if self.ids.error is not NONE:
            return
        while await self.transact() and not self.world.is_over():
            pass

    async def transact(self) -> bool:
        chance = self.world.brokers.chance
        await asyncio.sleep(chance.uniform(0, 0.5))
        token = self.world.next_token()
        for partition in chance.sample(PARTITIONS, chance.randint(1, 3)):
            if not await self.write(partition, token):
                return False
        wants = chance.random() < 0.6
        ids = self.ids
        step = await self.insist(
            lambda: self.coordinator.end(End("x", ids.producer_id, ids.producer_epoch, wants, self.version))
        )
        if step.error is not NONE:
            return False
        self.world.promises[token] = wants
        if self.version >= 2:
            self.ids = step
        return True

    async def write(self, partition: TopicPartition, token: int) -> bool:
        log = self.world.brokers.partitions[partition]
        while True:
            seen = log.markers_seen.get(self.ids.producer_id, 0)

            async def ask() -> Step:
                return Step(await ensure(self.coordinator, self.ids, partition))

            step = await self.insist(ask)
            if step.error is not NONE:
                return False
            if log.markers_seen.get(self.ids.producer_id, 0) == seen:
                return log.write(self.ids.producer_id, self.ids.producer_epoch, token) is NONE


class Chaos:
    def __init__(self, seed: int) -> None:
        self.brokers = Brokers(seed)
        self.promises: dict[int, bool] = {}
        self.tokens = 0
        self._is_over = False

    def is_over(self) -> bool:
        return self._is_over

    def next_token(self) -> int:
        self.tokens += 1
        return self.tokens

    async def elect(self) -> None:
        brokers, chance = self.brokers, self.brokers.chance
        while True:
            await asyncio.sleep(chance.expovariate(0.4))
            old = brokers.log.leader
            brokers.elect(chance.choice([0, 1, 2]), chance.randint(0, brokers.log.uncommitted()))
            if chance.random() < 0.5:
                asyncio.get_running_loop().call_later(chance.expovariate(0.5), brokers.tell, old)
            else:
                brokers.tell(old)

    async def produce(self) -> None:
        """One producer after the other, the next before the last has gone."""
        chance = self.brokers.chance
        running: list[asyncio.Task[None]] = []
        while not self.is_over():
            producer = Producer(self, chance.choice([0, 2]))
            running.append(asyncio.ensure_future(producer.run()))
            await asyncio.sleep(chance.expovariate(0.1))
        await asyncio.gather(*running)

    async def run(self) -> None:
        brokers = self.brokers
        producing = asyncio.ensure_future(self.produce())
        electing = asyncio.ensure_future(self.elect())
        always = [
            asyncio.ensure_future(brokers.replicate_always()),
            asyncio.ensure_future(brokers.abort_timed_out_always()),
        ]
        for _ in range(80):
            await asyncio.sleep(1)
            self.check()
        electing.cancel()
        brokers.network.is_well = True
        for replica in brokers.log.replicas:
            brokers.tell(replica)
        self._is_over = True
        await producing
        await asyncio.sleep(120)  # what was left open is aborted, what was decided is finished
        for task in always:
            task.cancel()
        self.check()
        for partition in brokers.partitions.values():
            assert not any(partition.open.values()), "a transaction hangs"
        for token, promise in self.promises.items():
            assert outcomes(brokers, token) == {promise}
        assert self.promises
        brokers.shutdown()

    def check(self) -> None:
        for token in range(1, self.tokens + 1):
            found = outcomes(self.brokers, token)
            assert len(found) < 2, f"transaction {token} was committed and aborted"
            promise = self.promises.get(token)
            assert promise is None or found <= {promise}, f"transaction {token} is not what was promised"


@pytest.mark.parametrize("seed", range(20))
def test_transactions_through_many_moves(seed: int) -> None:
    async def scenario() -> None:
        await Chaos(seed).run()

    run_virtually(scenario())
