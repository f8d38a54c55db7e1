"""Fetch, key 1, versions 4 to 18, with incremental fetch sessions.

Returns whole batches from the requested offsets up to the high watermark, as slices of segments that leave by sendfile.
Who reads committed records only gets them up to the last stable offset, with the aborted transactions to skip.
With too little to return it waits for `min_bytes`, at most `max_wait_ms`.
Missing: fetches by followers, and hints to other replicas: there is one broker.
"""

import asyncio
from collections.abc import Iterable, Sequence

from ottla.broker.handlers.context import Broker, Call, Parked, Raw, Response
from ottla.broker.handlers.fetch_packing import PartitionAnswer, pack
from ottla.broker.handlers.fetch_sessions import NO_SESSION, FetchSession, Wanted
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.waiters import FetchWait
from ottla.broker.storage.log import AbortedTransaction
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest

FIRST_VERSION_WITH_TOPIC_IDS = 13
CONSUMER_REPLICA_ID = -1
READ_COMMITTED = 1


def handle(broker: Broker, call: Call, request: FetchRequest) -> Response | Parked:
    try:
        session = broker.fetch_sessions.session_for(
            request,
            uses_topic_ids=call.version >= FIRST_VERSION_WITH_TOPIC_IDS,
            now=broker.clock.monotonic(),
        )
    except ApiError as error:
        return pack(call.version, error.code, NO_SESSION, ())
    fetch = _Fetch(broker, call, request, session)
    answers = fetch.read()
    missing = fetch.missing_in(answers)
    return fetch.park(missing) if missing else fetch.respond(answers)


class _Fetch:
    """One fetch request: read now, and perhaps once more when data has come."""

    __slots__ = ("broker", "call", "incremental", "read_committed", "request", "session", "wanted")

    def __init__(self, broker: Broker, call: Call, request: FetchRequest, session: FetchSession | None) -> None:
        self.broker = broker
        self.call = call
        self.request = request
        self.session = session
        self.read_committed = request.isolation_level == READ_COMMITTED
        self.incremental = session is not None and request.session_epoch > 0
        self.wanted: Sequence[Wanted]
        if session is not None:
            self.wanted = list(session.wanted.values())
        else:
            self.wanted = [
                Wanted((topic.topic, topic.topic_id), partition)
                for topic in request.topics
                for partition in topic.partitions
            ]

    def read(self) -> list[PartitionAnswer]:
        request = self.request
        left = min(request.max_bytes, self.broker.settings.fetch_max_bytes)
        answers = []
        nothing_yet = True
        for wanted in self.wanted:
            # The first batch found is returned even when it is larger than every limit, or the client could not go on.
            answer = self._read_partition(wanted, left, nothing_yet)
            size = answer.size
            if size:
                left -= size
                nothing_yet = False
            answers.append(answer)
        return answers

    def _read_partition(self, wanted: Wanted, bytes_left: int, min_one_batch: bool) -> PartitionAnswer:
        asked = wanted.request
        read_committed = self.read_committed
        aborted: Sequence[AbortedTransaction] | None = () if read_committed else None
        try:
            partition = self._partition(wanted)
            partition.check_epoch(asked.current_leader_epoch)
            diverging = _divergence(partition, asked)
            records = None
            if diverging is None:
                allowed = min(asked.partition_max_bytes, bytes_left)
                if allowed > 0 or min_one_batch:
                    offset, size = asked.fetch_offset, max(0, allowed)
                    if read_committed:
                        records, aborted = partition.read_committed(offset, size, min_one_batch=min_one_batch)
                    else:
                        records = partition.read(offset, size, min_one_batch=min_one_batch)
        except ApiError as error:
            return PartitionAnswer(wanted.topic, asked.partition, error.code, -1, -1, -1, aborted, None)
        return PartitionAnswer(
            wanted.topic, asked.partition, 0, partition.high_watermark, partition.last_stable_offset,
            partition.log.start_offset, aborted, records, diverging,
        )  # fmt: skip

    def _partition(self, wanted: Wanted) -> Partition:
        name, topic_id = wanted.topic
        if topic_id != NO_TOPIC_ID:
            name = self.broker.partitions.name_of(topic_id)
        elif self.call.version >= FIRST_VERSION_WITH_TOPIC_IDS:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        replica_id = self.request.replica_id
        if self.call.version >= 15:
            replica_id = self.request.replica_state.replica_id
        if replica_id > CONSUMER_REPLICA_ID:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker has no followers")
        return self.broker.partitions.get((name, wanted.request.partition))

    def missing_in(self, answers: Iterable[PartitionAnswer]) -> int:
        """How many bytes must still come before the client gets its answer."""
        request = self.request
        if request.max_wait_ms <= 0 or not self.wanted:
            return 0
        size = 0
        for answer in answers:
            if answer.error_code or answer.diverging is not None:
                return 0
            size += answer.size
        return max(0, request.min_bytes - size)

    def park(self, bytes_missing: int) -> Parked:
        parked = Parked(holds_connection=True)
        watched = [
            partition
            for wanted in self.wanted
            if (partition := self.broker.partitions.find(*self._name_and_index(wanted))) is not None
        ]

        def answer(at_deadline: bool) -> int:
            answers = self.read()
            missing = 0 if at_deadline else self.missing_in(answers)
            if not missing:
                parked.resolve(self.respond(answers))
            return missing

        wait = FetchWait(
            asyncio.get_running_loop(), watched, bytes_missing, self.request.max_wait_ms, answer,
            committed_only=self.read_committed,
        )  # fmt: skip
        parked.abandon = wait.cancel
        return parked

    def _name_and_index(self, wanted: Wanted) -> tuple[str, int]:
        name, topic_id = wanted.topic
        if topic_id != NO_TOPIC_ID:
            name = self.broker.partitions.name_of(topic_id)
        return name, wanted.request.partition

    def respond(self, answers: Sequence[PartitionAnswer]) -> Raw:
        session = self.session
        if session is None:
            return pack(self.call.version, 0, NO_SESSION, answers)
        told = []
        moved = []
        for wanted, answer in zip(self.wanted, answers, strict=True):
            changed = (
                bool(answer.size or answer.error_code)
                or answer.diverging is not None
                or wanted.high_watermark != answer.high_watermark
                or wanted.log_start_offset != answer.log_start_offset
            )
            wanted.high_watermark, wanted.log_start_offset = answer.high_watermark, answer.log_start_offset
            if changed or not self.incremental:
                told.append(answer)
            if answer.size:
                moved.append((wanted.topic, wanted.request.partition))
        session.move_to_end(moved)
        return pack(self.call.version, 0, session.id, told)


def _divergence(partition: Partition, asked: FetchPartition) -> tuple[int, int] | None:
    """Where the client's history parts from the log's, if the client said which epoch it fetched last."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.log.epoch_end_offset(asked.last_fetched_epoch)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return epoch, end_offset
    return None
