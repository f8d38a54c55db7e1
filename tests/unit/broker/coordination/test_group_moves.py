"""Groups whose coordinator moves between brokers: what was acknowledged stays, whoever is led astray is told."""

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest
from tests.virtual_time import LoopClock, run_virtually

from ottla.broker.coordination.groups.events import Commit, Join, Joined, OffsetToCommit, Sync, Synced
from ottla.broker.coordination.runtime import GroupCoordinator
from ottla.broker.handlers import offset_fetch
from ottla.broker.handlers.context import Call
from ottla.broker.session import Session
from ottla.cluster.image import ClusterImage
from ottla.config.broker import BrokerSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

from .group_world import RANGE
from .replicated_log import Replica, ReplicatedLog

NONE = ErrorCode.NONE
LOOK_ELSEWHERE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Brokers:
    """A group coordinator on each of several brokers."""

    def __init__(self, count: int = 3, **settings: Any) -> None:
        self.log = ReplicatedLog(count)
        self.settings = BrokerSettings(group_initial_rebalance_delay_ms=0, **settings)
        self.groups = [GroupCoordinator(replica, lambda: self.settings, LoopClock()) for replica in self.log.replicas]
        for groups in self.groups:
            groups.start()

    @property
    def leader(self) -> GroupCoordinator:
        return self.groups[self.log.leader.broker_id]

    def elect(self, broker_id: int, kept: int = 0) -> None:
        self.log.elect(broker_id, kept)
        self.groups[broker_id].refresh()

    def tell(self, replica: Replica) -> None:
        self.log.tell(replica)
        self.groups[replica.broker_id].refresh()

    async def move(self, broker_id: int) -> GroupCoordinator:
        """A leader that goes in peace."""
        old = self.log.leader
        self.log.replicate()
        self.elect(broker_id)
        self.tell(old)
        self.log.replicate()
        await self.leader.wait_loaded()
        return self.leader

    def shutdown(self) -> None:
        for groups in self.groups:
            groups.shutdown()


def join(groups: GroupCoordinator, member_id: str = "", **details: Any) -> "asyncio.Future[Joined]":
    return groups.join(
        Join(
            ticket=0, unique="", group_id="g", member_id=member_id, client_id="client", client_host="/127.0.0.1",
            session_timeout_ms=10_000, rebalance_timeout_ms=60_000, protocol_type="consumer", protocols=RANGE,
            **details,
        )
    )  # fmt: skip


def commit(groups: GroupCoordinator, offset: int, group_id: str = "g", **details: Any) -> Any:
    return groups.commit(Commit(group_id, [OffsetToCommit("t", 0, offset)], **details))


async def committed(groups: GroupCoordinator, group_id: str = "g") -> int | None:
    known = groups.fetch_all_offsets(group_id)
    offsets = known if isinstance(known, dict) else await known
    value = offsets.get("t", {}).get(0)
    return None if value is None else value.offset


async def told(brokers: Brokers) -> int | None:
    """What the coordinator says while the followers keep up."""
    asking = asyncio.ensure_future(committed(brokers.leader))
    await asyncio.sleep(0)
    brokers.log.replicate()
    return await asking


async def code_of(answer: Any) -> ErrorCode:
    try:
        await answer
    except ApiError as error:
        return error.code
    return NONE


async def stable(brokers: Brokers, **details: Any) -> tuple[str, int]:
    first = join(brokers.leader, **details)
    brokers.log.replicate()
    joined = await first
    if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
        joined = await join(brokers.leader, joined.member_id, **details)
    synced = brokers.leader.sync(
        Sync(0, "g", joined.member_id, joined.generation, assignments=((joined.member_id, b"mine"),), **details)
    )
    brokers.log.replicate()
    assert (await synced).error is NONE
    return joined.member_id, joined.generation


def test_an_offset_is_acknowledged_once_it_is_committed() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        answer = commit(brokers.leader, 1)
        await asyncio.sleep(1)
        assert not answer.done()
        reading = asyncio.ensure_future(committed(brokers.leader))
        await asyncio.sleep(1)
        assert not reading.done(), "an offset that may be lost was told"
        brokers.log.replicate()
        assert await answer == [NONE]
        assert await reading == 1
        brokers.shutdown()

    run_virtually(scenario())


def test_a_commit_that_takes_too_long_may_be_asked_again() -> None:
    async def scenario() -> None:
        brokers = Brokers(offsets_commit_timeout_ms=3000)
        began = asyncio.get_running_loop().time()
        assert await code_of(commit(brokers.leader, 1)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert asyncio.get_running_loop().time() - began == 3
        brokers.log.replicate()  # it was late, not lost
        assert await told(brokers) == 1
        brokers.shutdown()

    run_virtually(scenario())


def test_the_new_coordinator_answers_when_all_it_has_read_is_committed() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        answer = commit(brokers.leader, 7)
        old = brokers.log.leader
        brokers.elect(1, kept=1)
        await asyncio.sleep(1)
        assert await code_of(committed(brokers.leader)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        brokers.log.replicate()
        await brokers.leader.wait_loaded()
        assert await told(brokers) == 7
        assert not answer.done(), "the old one cannot know"
        brokers.tell(old)
        assert await code_of(answer) is ErrorCode.NOT_COORDINATOR
        assert await code_of(committed(brokers.groups[0])) is ErrorCode.NOT_COORDINATOR
        brokers.shutdown()

    run_virtually(scenario())


def test_what_was_not_acknowledged_may_be_lost_and_is_told_so() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        lost = commit(brokers.leader, 7)
        old = brokers.log.leader
        brokers.elect(1)
        zombie = commit(brokers.groups[0], 8)
        brokers.log.replicate()
        brokers.tell(old)
        assert await code_of(lost) is ErrorCode.NOT_COORDINATOR
        assert await code_of(zombie) is ErrorCode.NOT_COORDINATOR
        await brokers.leader.wait_loaded()
        assert await told(brokers) is None
        brokers.shutdown()

    run_virtually(scenario())


def test_a_deposed_coordinator_tells_no_old_offsets() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        first = commit(brokers.leader, 1)
        brokers.log.replicate()
        assert await first == [NONE]
        old = brokers.log.leader
        brokers.elect(1)
        await brokers.leader.wait_loaded()
        second = commit(brokers.leader, 2)
        brokers.log.replicate()
        assert await second == [NONE]
        asking = asyncio.ensure_future(code_of(committed(brokers.groups[0])))
        brokers.log.replicate()
        await asyncio.sleep(1)
        assert not asking.done(), "it could not know whether it still leads"
        brokers.tell(old)
        assert await asking is ErrorCode.NOT_COORDINATOR
        brokers.shutdown()

    run_virtually(scenario())


def test_groups_that_are_asked_for_in_one_request_wait_together() -> None:
    """A monitor asks for hundreds: a write for each, one after the other, would take it a minute."""

    async def scenario() -> None:
        brokers = Brokers()
        names = [f"g{number}" for number in range(200)]
        stored = [commit(brokers.leader, number, name) for number, name in enumerate(names)]
        brokers.log.replicate()
        assert [await each for each in stored] == [[NONE]] * len(names)
        broker: Any = SimpleNamespace(
            groups=brokers.leader, metadata=SimpleNamespace(image=ClusterImage()), authorizer=None
        )
        call = Call(ApiKey.OFFSET_FETCH, 9, "client", Session("PLAINTEXT", "127.0.0.1"))
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
        before = len(brokers.log.leader.batches)
        asking = asyncio.ensure_future(offset_fetch.handle(broker, call, request))
        while not asking.done():
            await asyncio.sleep(0)
            brokers.log.replicate()
        found = {each.group_id: each.topics[0].partitions[0].committed_offset for each in asking.result().groups}
        assert found == {name: number for number, name in enumerate(names)}
        assert len(brokers.log.leader.batches) - before <= 2
        brokers.shutdown()

    run_virtually(scenario())


LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize(
    ("version", "code", "of_each"),
    [
        (1, ErrorCode.NOT_COORDINATOR, [ErrorCode.NOT_COORDINATOR] * 2),
        (3, ErrorCode.NOT_COORDINATOR, [ErrorCode.NOT_COORDINATOR] * 2),  # aiokafka goes by these alone
        (3, LOADING, [LOADING] * 2),
        (7, ErrorCode.NOT_COORDINATOR, [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2),  # what librdkafka asks again for
        (7, LOADING, []),
        (9, ErrorCode.NOT_COORDINATOR, [ErrorCode.UNSTABLE_OFFSET_COMMIT] * 2),
        (9, LOADING, []),
    ],
)
def test_who_cannot_tell_offsets_says_it_so_that_every_client_asks_again(
    version: int, code: ErrorCode, of_each: list[ErrorCode]
) -> None:
    def refuse(*_: object) -> None:
        raise ApiError(code)

    async def scenario() -> None:
        groups = SimpleNamespace(check_fetch=lambda *_: NONE, unstable=refuse, fetch_offsets=refuse)
        broker: Any = SimpleNamespace(groups=groups, metadata=SimpleNamespace(image=ClusterImage()), authorizer=None)
        call = Call(ApiKey.OFFSET_FETCH, version, "client", Session("PLAINTEXT", "127.0.0.1"))
        asked = [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
        answer = await offset_fetch.handle(
            broker,
            call,
            OffsetFetchRequest(
                group_id="g",
                topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])],
                groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)],
            ),
        )
        found: Any = answer.groups[0] if version >= 8 else answer
        assert found.error_code == code
        assert [each.error_code for topic in found.topics for each in topic.partitions] == of_each

    run_virtually(scenario())


def test_readers_that_come_together_wait_together() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        stored = commit(brokers.leader, 1)
        brokers.log.replicate()
        assert await stored == [NONE]
        first = asyncio.ensure_future(committed(brokers.leader))
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(committed(brokers.leader)) for _ in range(50)]
        await asyncio.sleep(0.1)
        end = brokers.log.leader.end
        brokers.log.replicate()
        assert await first == 1
        await asyncio.sleep(0.1)
        assert not any(other.done() for other in others), "the proof is from before they asked"
        brokers.log.replicate()
        assert await asyncio.gather(*others) == [1] * 50
        assert brokers.log.leader.end == end + 1
        again = GroupCoordinator(brokers.log.leader, lambda: brokers.settings, LoopClock())
        again.start()
        await again.wait_loaded()
        assert [group.group_id for group in again.list_groups()] == ["g"], "what proves it is nothing to know"
        again.shutdown()
        brokers.shutdown()

    run_virtually(scenario())


def test_a_partition_that_comes_back_in_another_epoch_is_read_again() -> None:
    """The broker may not even have noticed that another one led in between."""

    async def scenario() -> None:
        brokers = Brokers()
        brokers.log.replicate()
        stale = commit(brokers.leader, 1)
        brokers.elect(1)
        await brokers.leader.wait_loaded()
        between = commit(brokers.leader, 2)
        brokers.log.replicate()
        assert await between == [NONE]
        brokers.elect(0)  # the first one again: one refresh, from one epoch to the one after the next
        assert await code_of(stale) is ErrorCode.NOT_COORDINATOR
        brokers.log.replicate()
        await brokers.leader.wait_loaded()
        assert await told(brokers) == 2
        brokers.shutdown()

    run_virtually(scenario())


def test_a_member_goes_on_with_the_new_coordinator() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        member_id, generation = await stable(brokers)
        for target in (1, 2, 0, 2):
            moved = await brokers.move(target)
            assert moved.heartbeat("g", member_id, None, generation) is NONE
            answer = commit(moved, target, member_id=member_id, generation=generation)
            brokers.log.replicate()
            assert await answer == [NONE]
        # Its session runs anew with each coordinator, and ends with the last one alone.
        await asyncio.sleep(10.1)
        assert brokers.leader.heartbeat("g", member_id, None, generation) is ErrorCode.UNKNOWN_MEMBER_ID
        brokers.shutdown()

    run_virtually(scenario())


def test_a_static_member_keeps_its_place() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        member_id, generation = await stable(brokers, instance_id="s1")
        moved = await brokers.move(1)
        assert moved.heartbeat("g", member_id, "s1", generation) is NONE
        again = join(moved, instance_id="s1", can_skip_assignment=True)
        brokers.log.replicate()
        joined = await again
        assert (joined.error, joined.generation) == (NONE, generation)
        assert joined.member_id != member_id
        assert moved.heartbeat("g", member_id, "s1", generation) is ErrorCode.FENCED_INSTANCE_ID
        brokers.shutdown()

    run_virtually(scenario())


def test_whoever_waits_in_a_join_is_sent_to_the_new_coordinator() -> None:
    async def scenario() -> None:
        brokers = Brokers()
        await stable(brokers)
        parked = join(brokers.leader, requires_known_id=False)
        await asyncio.sleep(0.1)
        assert not parked.done()
        old = brokers.log.leader
        brokers.elect(2)
        brokers.tell(old)
        assert (await parked).error is ErrorCode.NOT_COORDINATOR
        brokers.shutdown()

    run_virtually(scenario())


# Everything at once


class Committer:
    """Commits ever larger offsets of a group of its own, to whoever it believes to be the coordinator."""

    def __init__(self, world: "Chaos", group_id: str) -> None:
        self.world = world
        self.group_id = group_id
        self.acknowledged = 0
        self.believed = 0

    async def run(self) -> None:
        offset = 0
        while not self.world.is_over():
            offset += 1
            await asyncio.sleep(self.world.chance.uniform(0, 0.4))
            try:
                answer = commit(self.world.brokers.groups[self.believed], offset, self.group_id)
                codes = answer if isinstance(answer, list) else await answer
                if codes == [NONE]:
                    self.acknowledged = offset
            except ApiError as error:
                if error.code in LOOK_ELSEWHERE:
                    # At times it finds one that does not know yet that it was deposed.
                    self.believed = self.world.chance.choice([self.world.brokers.log.leader.broker_id, 0, 1, 2])

    async def check(self) -> None:
        """Whoever answers, deposed or not, tells nothing that was replaced before."""
        before = self.acknowledged
        try:
            known = await committed(self.world.chance.choice(self.world.brokers.groups), self.group_id)
        except ApiError:
            return
        assert (known or 0) >= before, f"{before} was acknowledged for {self.group_id}, and {known} is what is left"


class Member:
    """A consumer: joins, syncs, heartbeats, and asks elsewhere when it is told to."""

    def __init__(self, world: "Chaos", number: int) -> None:
        self.world = world
        self.number = number
        self.member_id = ""
        self.believed = 0
        self.at_work_in = -1
        """The generation that it has an assignment of."""

    @property
    def groups(self) -> GroupCoordinator:
        return self.world.brokers.groups[self.believed]

    async def run(self) -> None:
        while not self.world.is_over():
            try:
                generation = await self.rejoin()
                while generation is not None and not self.world.is_over():
                    await asyncio.sleep(self.world.chance.uniform(0.2, 1))
                    code = self.groups.heartbeat("g", self.member_id, None, generation)
                    if code in LOOK_ELSEWHERE:
                        self.look_elsewhere()
                    elif code is ErrorCode.UNKNOWN_MEMBER_ID:
                        self.member_id, generation = "", None
                    elif code is not NONE:
                        generation = None
            except ApiError:
                self.look_elsewhere()
            self.at_work_in = -1
            await asyncio.sleep(self.world.chance.uniform(0.05, 0.3))

    def look_elsewhere(self) -> None:
        self.believed = self.world.chance.choice([self.world.brokers.log.leader.broker_id, 0, 1, 2])

    async def rejoin(self) -> int | None:
        joined = await join(self.groups, self.member_id)
        if joined.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = await join(self.groups, self.member_id)
        if joined.error is not NONE:
            self.failed(joined.error)
            return None
        nonce = f"{self.number}-{self.world.chance.random()}".encode()
        assignments = tuple((member.member_id, nonce) for member in joined.members)
        synced = await self.groups.sync(Sync(0, "g", self.member_id, joined.generation, assignments=assignments))
        if synced.error is not NONE:
            self.failed(synced.error)
            return None
        self.check_assignment(joined, synced)
        self.at_work_in = joined.generation
        return joined.generation

    def failed(self, code: ErrorCode) -> None:
        if code in LOOK_ELSEWHERE:
            self.look_elsewhere()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def check_assignment(self, joined: Joined, synced: Synced) -> None:
        """All assignments of a generation come from one leader of one coordinator."""
        known = self.world.assigned.setdefault(joined.generation, synced.assignment)
        assert known == synced.assignment, f"generation {joined.generation} was assigned twice"


class Chaos:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.brokers = Brokers()
        self._is_over = False
        self.assigned: dict[int, bytes] = {}
        self.committers = [Committer(self, name) for name in ("c1", "c2", "c3")]
        self.members = [Member(self, number) for number in range(3)]

    def is_over(self) -> bool:
        return self._is_over

    async def replicate(self) -> None:
        while True:
            await asyncio.sleep(self.chance.expovariate(5))
            self.brokers.log.replicate()

    async def elect(self) -> None:
        while not self.is_over():
            await asyncio.sleep(self.chance.expovariate(0.3))
            old, log = self.brokers.log.leader, self.brokers.log
            kept = self.chance.randint(0, log.uncommitted())
            self.brokers.elect(self.chance.choice([0, 1, 2]), kept)
            if self.chance.random() < 0.5:
                asyncio.get_running_loop().call_later(self.chance.expovariate(0.7), self.brokers.tell, old)
            else:
                self.brokers.tell(old)

    async def run(self) -> None:
        clients = [asyncio.ensure_future(member.run()) for member in self.members]
        clients += [asyncio.ensure_future(committer.run()) for committer in self.committers]
        world = [asyncio.ensure_future(self.replicate()), asyncio.ensure_future(self.elect())]
        for _ in range(60):
            await asyncio.sleep(self.chance.uniform(0, 2))
            for committer in self.committers:
                await committer.check()
        world[1].cancel()
        for replica in self.brokers.log.replicas:
            self.brokers.tell(replica)
        # Left in peace, the members find their coordinator and work together.
        await asyncio.sleep(120)
        assert len({member.at_work_in for member in self.members}) == 1, [m.at_work_in for m in self.members]
        assert self.members[0].at_work_in > 0
        self._is_over = True
        await asyncio.sleep(120)
        for done in clients:
            done.result() if done.done() else done.cancel()
        for committer in self.committers:
            assert committer.acknowledged > 0
            await committer.check()
        world[0].cancel()
        self.brokers.shutdown()


@pytest.mark.parametrize("seed", range(12))
def test_groups_through_many_moves(seed: int) -> None:
    async def scenario() -> None:
        await Chaos(seed).run()

    run_virtually(scenario())
