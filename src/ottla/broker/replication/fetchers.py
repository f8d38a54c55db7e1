"""Followers at work: one task per leader and fetcher index, each with one fetch under way.

The next fetch leaves as soon as the answer to the last is in the logs: how soon a producer hears that all replicas have
its records depends on it.
"""

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Callable, Iterator

from ottla.broker.quotas.throttles import ReplicationThrottle
from ottla.broker.replication.fetch_requests import Followed, Key, SessionRequests
from ottla.broker.replication.follower import Reaction, cut_for, pause_s, reaction_to
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.peers import Peers
from ottla.broker.replication.throttling import follower_throttle
from ottla.config.live import LiveConfig
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData

logger = logging.getLogger(__name__)

BYTES_PER_TURN = 2 * 1024 * 1024
"""After so many appended bytes the loop's other work comes first for a moment."""
_SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class ReplicaFetchers:
    """All fetchers of a broker. Observes the roles of its replicas."""

    def __init__(
        self, node_id: int, peers: Peers, config: LiveConfig, clock: Clock, broker_epoch: Callable[[], int]
    ) -> None:
        self._node_id = node_id
        self._throttle = follower_throttle(node_id, config)
        self._peers = peers
        self._config = config
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._homes: dict[Key, tuple[Partition, Fetcher]] = {}
        self._started = False

    def role_changed(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.tp.partition)
        known = self._homes.pop(key, None)
        if known is not None:
            known[1].remove(key)
        if partition.is_follower:
            home = self.home_of(partition)
            self._homes[key] = (partition, home)
            home.add(partition)

    def reconfigure(self) -> None:
        """Spread the partitions anew if there are to be more fetchers, or fewer."""
        for partition, home in tuple(self._homes.values()):
            if self.home_of(partition) is not home:
                self.role_changed(partition)

    def home_of(self, partition: Partition) -> "Fetcher":
        """The fetcher that follows this partition's leader for it."""
        index = zlib.crc32(str(partition.tp).encode()) % self._config.broker.num_replica_fetchers
        fetcher = self._fetchers.get((partition.leader, index))
        if fetcher is None:
            fetcher = self._fetchers[partition.leader, index] = Fetcher(
                self._node_id, partition.leader, index, self._peers, self._config, self._clock, self._broker_epoch,
                self._throttle,
            )  # fmt: skip
            if self._started:
                fetcher.start()
        return fetcher

    def followed(self) -> Iterator[Followed]:
        """What is followed at the moment, with how far it is behind."""
        return (each for fetcher in tuple(self._fetchers.values()) for each in fetcher.followed())

    @property
    def failing(self) -> int:
        """How many partitions are left out of the fetches for a while, because of an error."""
        return sum(fetcher.failing for fetcher in self._fetchers.values())

    def start(self) -> None:
        """Begin to fetch: when this broker is registered, so that leaders know which of its broker epochs they see."""
        self._started = True
        for fetcher in self._fetchers.values():
            fetcher.start()

    async def stop(self) -> None:
        self._started = False
        await asyncio.gather(*(fetcher.stop() for fetcher in self._fetchers.values()))


class Fetcher:
    """The fetches from one leader, one after the other."""

    def __init__(
        self,
        node_id: int,
        leader: int,
        index: int,
        peers: Peers,
        config: LiveConfig,
        clock: Clock,
        broker_epoch: Callable[[], int],
        throttle: ReplicationThrottle,
    ) -> None:
        self._node_id = node_id
        self._leader = leader
        self._throttle = throttle
        self._lane = f"fetch-{index}"
        self._peers = peers
        self._config = config
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._requests = SessionRequests(node_id)
        self._resting: dict[Key, tuple[Followed, asyncio.TimerHandle]] = {}
        self._work = asyncio.Event()
        self._waiting = False
        self._nudging = False
        self._nudge: asyncio.Task[None] | None = None
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, partition: Partition) -> None:
        self._join(Followed(partition))

    def _join(self, followed: Followed) -> None:
        """Take part in the next fetch, which is not to wait until the one under way is answered for other reasons."""
        self._requests.add(followed)
        self._work.set()
        if self._waiting and not self._nudging:
            self._nudging = True
            self._nudge = asyncio.get_running_loop().create_task(self._hurry_leader())

    async def _hurry_leader(self) -> None:
        """Any request behind the fetch will do: a leader answers a waiting follower that has more to say."""
        # A refusal or a broken connection ends the fetch too, and then the fetcher deals with it.
        with contextlib.suppress(ApiError):
            await self._peers.call(
                self._leader, ApiVersionsRequest(), ApiVersionsResponse, timeout_s=self._timeout_s(), lane=self._lane,
                max_version=0,
            )  # fmt: skip

    def remove(self, key: Key) -> None:
        self._requests.remove(key)
        rested = self._resting.pop(key, None)
        if rested is not None:
            rested[1].cancel()

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"fetcher {self._leader}")

    async def stop(self) -> None:
        for _, timer in self._resting.values():
            timer.cancel()
        tasks = [task for task in (self._task, self._nudge) if task is not None]
        self._task = self._nudge = None
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self) -> None:
        while True:
            self._leave_out_throttled()
            if not self._requests.followed:
                self._work.clear()
                await self._work.wait()
            try:
                await self._fetch()
                self._failures = 0
            except ApiError as error:
                self._requests.reset()
                self._failures += 1
                if self._failures == 1:
                    logger.warning(
                        "Replica fetcher: fetching from leader %d failed, trying again: %s", self._leader, error
                    )
                await self._pause()
            except Exception:
                logger.exception("Replica fetcher: fetching from leader %d failed, trying again", self._leader)
                self._requests.reset()
                self._failures += 1
                await self._pause()

    async def _pause(self) -> None:
        """Wait a while before the next attempt; what is newly to be followed is a reason to try at once."""
        self._work.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._pause_s(self._failures)):
                await self._work.wait()

    def _pause_s(self, failures: int) -> float:
        return pause_s(failures, self._config.broker.replica_fetch_backoff_ms / 1000.0)

    async def _fetch(self) -> None:
        answer = await self._ask()
        if answer.error_code in _SESSION_ERRORS:
            # The leader forgot the session, or has no room for more: name everything again at once.
            self._requests.reset()
            answer = await self._ask()
        await self.handle_response(answer)

    async def _ask(self) -> FetchResponse:
        request = self.next_request()
        self._waiting, self._nudging = True, False
        try:
            return await self._peers.call(
                self._leader, request, FetchResponse, timeout_s=self._timeout_s(), lane=self._lane
            )
        finally:
            self._waiting = False

    def _timeout_s(self) -> float:
        settings = self._config.broker
        return (settings.replica_fetch_wait_max_ms + settings.replica_socket_timeout_ms) / 1000.0

    def forget_session(self) -> None:
        """Name everything again in the next fetch."""
        self._requests.reset()

    def followed(self) -> tuple[Followed, ...]:
        return (*self._requests.followed.values(), *(each for each, _ in self._resting.values()))

    @property
    def failing(self) -> int:
        return sum(followed.failures > 0 for followed, _ in self._resting.values())

    @property
    def has_work(self) -> bool:
        return bool(self._requests.followed)

    def next_request(self) -> FetchRequest:
        return self._requests.next(self._config.broker, self._broker_epoch())

    async def handle_response(self, answer: FetchResponse) -> None:
        """Take in what the leader sent, partition by partition; much of it in several turns of the loop."""
        if answer.error_code:
            raise ApiError(ErrorCode(answer.error_code))
        self._requests.answered(answer.session_id)
        taken = 0
        for topic in answer.responses:
            for data in topic.partitions:
                followed = self._requests.was_asked((topic.topic_id, data.partition_index))
                if followed is None or not followed.is_current:
                    continue
                taken += self._take(followed, data)
                if taken >= BYTES_PER_TURN:
                    taken = 0
                    await asyncio.sleep(0)

    def _take(self, followed: Followed, data: PartitionData) -> int:
        """Do what the leader's answer asks for; trouble with one partition is no trouble of the others."""
        try:
            size = self._apply(followed, data)
        except ApiError as error:
            self._rest(followed, error)
            return 0
        except Exception as error:
            logger.exception(
                "%s: Replication failed: cannot append what leader %d sent", followed.partition.tp, self._leader
            )
            self._rest(followed, ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))
            return 0
        followed.failures = 0
        return size

    def _apply(self, followed: Followed, data: PartitionData) -> int:
        partition = followed.partition
        log = partition.log
        if data.error_code:
            if reaction_to(data.error_code, data.log_start_offset) is not Reaction.TRUNCATE_FULLY:
                raise ApiError(ErrorCode(data.error_code))
            logger.warning(
                "%s: Truncating fully to offset %d, the log start offset of leader %d: fetch offset out of range",
                partition.tp, data.log_start_offset, self._leader,
            )  # fmt: skip
            partition.truncate_fully_and_start_at(data.log_start_offset)
            self._requests.moved(followed)
            return 0
        diverging = data.diverging_epoch
        if diverging.epoch >= 0 and diverging.end_offset >= 0:
            cut = cut_for(log.leader_epochs, log.end_offset, diverging.epoch, diverging.end_offset)
            logger.info(
                "%s: Truncating to offset %d (log end offset %d): diverging from leader %d after leader epoch %d",
                partition.tp, cut, log.end_offset, self._leader, diverging.epoch,
            )  # fmt: skip
            partition.truncate_to(cut)
            self._requests.moved(followed)
            return 0
        size = 0
        start_before = log.start_offset
        if data.records:
            size = partition.replicate(data.records, self._clock.now_ms()).byte_count
            self._throttle.note(*partition.tp, size, self._clock.monotonic())
            partition.traffic.replication_bytes_in += size
            if self._node_id in partition.adding:
                partition.traffic.reassignment_bytes_in += size
        partition.follow(data.high_watermark, data.log_start_offset)
        followed.has_caught_up = log.end_offset >= data.high_watermark
        followed.lag = max(0, data.high_watermark - log.end_offset)
        if size or log.start_offset != start_before:
            self._requests.moved(followed)
        return size

    def _leave_out_throttled(self) -> None:
        """Replicas that are behind ask for nothing while the followers' limit is used up."""
        wait_s = self._throttle.seconds_to_wait(self._clock.monotonic())
        if not wait_s:
            return
        for followed in tuple(self._requests.followed.values()):
            if not followed.has_caught_up and self._throttle.applies_to(*followed.partition.tp):
                self._leave_out(followed, wait_s)

    def _rest(self, followed: Followed, error: ApiError) -> None:
        """Leave the partition out of the fetches for a while."""
        followed.failures += 1
        level = logging.INFO if followed.failures == 1 else logging.DEBUG
        logger.log(
            level, "%s: Replication from leader %d failed, trying again: %s", followed.partition.tp, self._leader, error
        )
        self._leave_out(followed, self._pause_s(followed.failures))

    def _leave_out(self, followed: Followed, for_s: float) -> None:
        self._requests.remove(followed.key)
        timer = asyncio.get_running_loop().call_later(for_s, self._try_again, followed)
        self._resting[followed.key] = (followed, timer)

    def _try_again(self, followed: Followed) -> None:
        self._resting.pop(followed.key, None)
        if followed.is_current:
            self._join(followed)
