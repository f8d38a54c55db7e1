"""A coordinator's topic on several brokers: leaders change, old ones go on for a while without knowing it.

Each broker has its own copy of the one partition. What the true leader has is committed when `replicate` is called;
who is elected has everything that was committed, and as much of the rest as the test says. A broker that was deposed
goes on as a zombie until it is told: it appends to its own copy, and nothing of that is ever committed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping

from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import read_header

from .memory_log import marker_batch


class Replica:
    """Implements CoordinatorLog for one broker."""

    def __init__(self, cluster: "ReplicatedLog", broker_id: int) -> None:
        self.broker_id = broker_id
        self.cluster = cluster
        self.batches: list[bytes] = []
        self.start = 0
        self.epoch: int | None = None
        """In which it believes to lead, if it does."""
        self.waiting: list[tuple[int, asyncio.Future[None]]] = []

    # What the coordinator calls

    def partition_count(self) -> int:
        return 1

    def led_partitions(self) -> Mapping[int, int]:
        return {} if self.epoch is None else {0: self.epoch}

    def check_led(self, partition: int, epoch: int) -> None:
        if self.epoch != epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def may_be_deposed(self, partition: int) -> bool:
        return True

    def append(self, partition: int, batch: bytearray, epoch: int) -> Awaitable[None] | None:
        self.check_led(partition, epoch)
        batch[:8] = self.end.to_bytes(8, "big")
        self.batches.append(bytes(batch))
        return self.when_committed(partition, self.end, epoch)

    def append_marker(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        epoch: int,
    ) -> Awaitable[None] | None:
        return self.append(partition, marker_batch(producer_id, producer_epoch, commit, coordinator_epoch), epoch)

    def when_committed(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        self.check_led(partition, epoch)
        if offset <= self.cluster.committed and self.cluster.is_leader(self):
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((offset, future))
        return future

    def read(self, partition: int, end: int | None = None) -> Iterator[bytes | memoryview]:
        for batch in list(self.batches):
            if read_header(batch).last_offset >= self.start:
                yield batch

    def start_offset(self, partition: int) -> int:
        return self.start

    def end_offset(self, partition: int) -> int:
        return self.end

    def truncate_before(self, partition: int, offset: int, epoch: int) -> Awaitable[None] | None:
        self.check_led(partition, epoch)

        async def drop() -> None:
            pending = self.when_committed(0, self.end, epoch)
            if pending is not None:
                await pending
            self.check_led(partition, epoch)
            self.start = max(self.start, offset)

        return drop()

    # What the cluster does

    @property
    def end(self) -> int:
        return read_header(self.batches[-1]).last_offset + 1 if self.batches else 0

    def settle(self, is_done: Callable[[int], bool], error: ApiError | None = None) -> None:
        still = []
        for offset, future in self.waiting:
            if not is_done(offset):
                still.append((offset, future))
            elif not future.done():
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(error)
                    future.exception()  # seen: who waited may have gone
        self.waiting = still


class ReplicatedLog:
    def __init__(self, brokers: int) -> None:
        self.replicas = [Replica(self, number) for number in range(brokers)]
        self.leader = self.replicas[0]
        self.leader.epoch = 0
        self.epoch = 0
        self.committed = 0

    def is_leader(self, replica: Replica) -> bool:
        return replica is self.leader and replica.epoch == self.epoch

    def replicate(self) -> None:
        """The followers have caught up: everything that the true leader has is committed."""
        self.committed = max(self.committed, self.leader.end)
        self.leader.settle(lambda offset: offset <= self.committed)

    def uncommitted(self) -> int:
        """How many batches of the leader are not committed."""
        return sum(read_header(batch).last_offset >= self.committed for batch in self.leader.batches)

    def elect(self, broker_id: int, kept: int = 0) -> Replica:
        """Another leader, which has everything committed and `kept` batches of what is not. The old one goes on."""
        old, new = self.leader, self.replicas[broker_id]
        sure = len(old.batches) - self.uncommitted()
        batches = old.batches[: sure + kept]
        self.epoch += 1
        self.leader = new
        new.settle(lambda _: True, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        new.batches, new.start, new.epoch = list(batches), old.start, self.epoch
        return new

    def tell(self, replica: Replica) -> None:
        """A deposed leader learns that it is one, and takes over what the true one has."""
        if not self.is_leader(replica):
            replica.epoch = None
            replica.settle(lambda _: True, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            replica.batches = list(self.leader.batches)
