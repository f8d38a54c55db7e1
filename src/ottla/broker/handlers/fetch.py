"""Fetch, key 1, versions 4 to 18, with incremental fetch sessions, by consumers and by followers.

Returns whole batches from the requested offsets on, as slices of segments that leave by sendfile: up to the high
watermark to consumers, up to the end of the log to followers. A follower's fetch also tells how far it has got.
Who reads committed records only gets them up to the last stable offset, with the aborted transactions to skip.
With too little to return it waits for `min_bytes`, at most `max_wait_ms`.
A consumer that names its rack may be sent to an in-sync follower there (KIP-392), and from version 11 on consumers may
read from followers, up to what these know to be committed; an offset that these do not have is out of range only to who
names a rack, and a matter for the leader to others. A follower that is not in sync gets no records of throttled
partitions while the leader's limit is used up. A consumer that has used up its quota gets an answer without partitions.
"""

import asyncio
from collections.abc import Iterable, Sequence

from ottla.broker.handlers.common.leader_hints import hint_for_error
from ottla.broker.handlers.context import Broker, Call, Parked, Raw, Response
from ottla.broker.handlers.fetching.packing import NO_REPLICA, PartitionAnswer, pack
from ottla.broker.handlers.fetching.reader_choice import preferred_replica
from ottla.broker.handlers.fetching.sessions import CONSUMER, FetchSession, View, Wanted
from ottla.broker.quotas.budgets import RateBudget
from ottla.broker.replication.partition import Partition
from ottla.broker.replication.waiters import FetchWait
from ottla.broker.security.acls.authorizer import Authorizer
from ottla.broker.storage.log import AbortedTransaction, LogSlice
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import NO_TOPIC_ID
from ottla.model.rights import Operation, Resource
from ottla.model.sentinels import NO_EPOCH, NO_FETCH_SESSION
from ottla.model.wire_numbers import READ_COMMITTED
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest

FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_REPLICA_STATE = 15
FIRST_VERSION_OF_FOLLOWER_READS = 11
NO_VERSION = -1


def handle(broker: Broker, call: Call, request: FetchRequest) -> Response | Parked:
    replica_id, replica_epoch = request.replica_id, NO_EPOCH
    if call.version >= FIRST_VERSION_WITH_REPLICA_STATE:
        replica_id, replica_epoch = request.replica_state.replica_id, request.replica_state.replica_epoch
    replica_id = max(replica_id, CONSUMER)
    now = broker.clock.monotonic()
    try:
        if replica_id >= 0:
            call.exempt = True
            _check_broker_epoch(broker, replica_id, replica_epoch)
        session = broker.fetch_sessions.session_for(
            request, uses_topic_ids=call.version >= FIRST_VERSION_WITH_TOPIC_IDS, now=now, replica_id=replica_id
        )
    except ApiError as error:
        return pack(call.version, error.code, NO_FETCH_SESSION, ())
    if broker.authorizer is not None and session is not None:
        session.look_again_under(broker.authorizer.version)
    fetch = _Fetch(broker, call, request, session, replica_id, replica_epoch)
    if broker.quotas.fetch is not None and replica_id < 0:
        fetch.budget = _bounded(broker, call, request, int(now * 1000))
    fetch.view.fetched_s = fetch.view.answered_s
    answers = fetch.read()
    missing = fetch.missing_in(answers)
    return fetch.park(missing) if missing else fetch.respond(answers)


def _bounded(broker: Broker, call: Call, request: FetchRequest, now_ms: int) -> RateBudget | None:
    """The client's quota; the request is made to ask for no more than who has used nothing of it may have at once."""
    budgets = broker.quotas.fetch
    budget = None if budgets is None else budgets.of(call.session.entity, now_ms)
    if budget is not None:
        most = budget.bound * broker.quotas.fetch_window_s
        request.max_bytes = min(request.max_bytes, most)
        request.min_bytes = min(request.min_bytes, most)
    return budget


def _check_broker_epoch(broker: Broker, replica_id: int, replica_epoch: int) -> None:
    """What a follower asked before it registered again says nothing about what it has now."""
    known = broker.metadata.image.brokers.get(replica_id)
    if known is not None and NO_EPOCH < replica_epoch < known.epoch:
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH)


class _Fetch:
    """One fetch request: read now, and perhaps once more when data has come."""

    __slots__ = (
        "allowed", "broker", "budget", "call", "incremental", "read_committed", "replica_epoch", "replica_id",
        "request",
        "session", "view",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        call: Call,
        request: FetchRequest,
        session: FetchSession | None,
        replica_id: int,
        replica_epoch: int,
    ) -> None:
        self.allowed: tuple[int, dict[str, bool]] = (NO_VERSION, {})
        """Which topics may be read, under the rules of this version."""
        self.broker = broker
        self.budget: RateBudget | None = None
        self.call = call
        self.request = request
        self.session = session
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.read_committed = request.isolation_level == READ_COMMITTED
        self.incremental = session is not None and request.session_epoch > 0
        if session is not None:
            self.view: View = session
        else:
            self.view = View(replica_id)
            self.view.want(request)
        self.view.committed_only = self.read_committed

    def read(self) -> list[tuple[Wanted, PartitionAnswer]]:
        """What the partitions have that may have something."""
        left = min(self.request.max_bytes, self.broker.settings.fetch_max_bytes)
        answers = []
        nothing_yet = True
        for wanted in tuple(self.view.dirty.values()):
            # The first batch found is returned even when it is larger than every limit, or the client could not go on.
            answer = self._read_partition(wanted, left, nothing_yet)
            size = answer.size
            if size:
                left -= size
                nothing_yet = False
            answers.append((wanted, answer))
        return answers

    def _read_partition(self, wanted: Wanted, bytes_left: int, min_one_batch: bool) -> PartitionAnswer:
        asked = wanted.request
        aborted: Sequence[AbortedTransaction] | None = () if self.read_committed else None
        try:
            partition = self._partition(wanted)
            wanted.traffic = partition.traffic
            partition.traffic.reads += 1
            partition.check_epoch(asked.current_leader_epoch)
            diverging = _divergence(partition, asked)
            records = None
            preferred = NO_REPLICA
            if self.replica_id < 0 and self.request.rack_id:
                preferred = preferred_replica(
                    self.broker, self.call, partition, self.request.rack_id, asked.fetch_offset
                )
            if diverging is None and preferred == NO_REPLICA:
                if self.replica_id >= 0:
                    partition.fetched_by(
                        self.replica_id, asked.fetch_offset, asked.log_start_offset, self.replica_epoch, self.view
                    )
                allowed = min(asked.partition_max_bytes, bytes_left)
                if (allowed > 0 or min_one_batch) and not self._is_held_up(partition):
                    records, aborted = self._records(partition, asked.fetch_offset, max(0, allowed), min_one_batch)
            if self.session is not None:
                wanted.watch(partition)
        except ApiError as error:
            return self._refusal(wanted, error, aborted)
        return PartitionAnswer(
            wanted.topic, asked.partition, 0, partition.high_watermark, partition.last_stable_offset,
            partition.log.start_offset, aborted, records, diverging, preferred,
        )  # fmt: skip

    def _is_held_up(self, partition: Partition) -> bool:
        """A follower that catches up must leave room for others when the leader's limit says so."""
        return (
            self.replica_id >= 0
            and self.replica_id not in partition.isr
            and self.broker.leader_throttle.holds_up(*partition.tp, self.broker.clock.monotonic())
        )

    def _records(
        self, partition: Partition, offset: int, size: int, min_one_batch: bool
    ) -> tuple[LogSlice, Sequence[AbortedTransaction] | None]:
        if self.replica_id >= 0:
            return partition.read_uncommitted(offset, size, min_one_batch=min_one_batch), None
        if self.read_committed:
            return partition.read_committed(offset, size, min_one_batch=min_one_batch)
        return partition.read(offset, size, min_one_batch=min_one_batch), None

    def _refusal(
        self, wanted: Wanted, error: ApiError, aborted: Sequence[AbortedTransaction] | None
    ) -> PartitionAnswer:
        start = -1
        code = error.code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            partition = self._partition(wanted)
            if self.replica_id >= 0:
                start = partition.log.start_offset  # where the follower is to begin anew
            elif not partition.is_leader and not self.request.rack_id:
                # Only who names a rack can have been sent to a follower, and asks the leader before it gives up its
                # place. Others took this broker for the leader (aiokafka, which tells no leader epoch), and would go on
                # at the end or begin anew, because of a log that is empty or behind.
                code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if wanted.traffic is not None:
            wanted.traffic.read_refused(code)
        number = wanted.request.partition
        hint = hint_for_error(self.broker, self.call, code, wanted.topic, number)
        return PartitionAnswer(wanted.topic, number, code, -1, -1, start, aborted, None, leader=hint)

    def _partition(self, wanted: Wanted) -> Partition:
        name, topic_id = wanted.topic
        if topic_id != NO_TOPIC_ID:
            name = self.broker.partitions.name_of(topic_id)
        elif self.call.version >= FIRST_VERSION_WITH_TOPIC_IDS:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        key = (name, wanted.request.partition)
        if self.broker.authorizer is not None and not self._may_read(self.broker.authorizer, name):
            raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self.replica_id >= 0:
            return self.broker.partitions.get_led(key)
        if self.call.version >= FIRST_VERSION_OF_FOLLOWER_READS:
            return self.broker.partitions.get_readable(key)
        return self.broker.partitions.get(key)

    def _may_read(self, authorizer: Authorizer, name: str) -> bool:
        """Asked once for each topic, unless rules change while the fetch waits."""
        version, known = self.allowed
        if version != authorizer.version:
            version, known = self.allowed = (authorizer.version, {})
        topic = name if self.replica_id < 0 else ""
        allowed = known.get(topic)
        if allowed is None:
            session, key = self.call.session, self.call.api_key
            if self.replica_id >= 0:
                allowed = authorizer.allows(session, key, Operation.CLUSTER_ACTION, Resource.CLUSTER)
            else:
                allowed = authorizer.allows(session, key, Operation.READ, Resource.TOPIC, name)
            known[topic] = allowed
        return allowed

    def missing_in(self, answers: Iterable[tuple[Wanted, PartitionAnswer]]) -> int:
        """How many bytes must still come before the client gets its answer."""
        request = self.request
        if request.max_wait_ms <= 0 or not self.view.wanted:
            return 0
        size = 0
        for wanted, answer in answers:
            if answer.error_code or answer.diverging is not None or answer.preferred_replica != NO_REPLICA:
                return 0
            if self.replica_id >= 0 and self.incremental and answer.log_start_offset != wanted.log_start_offset:
                return 0  # whoever deletes records waits until every replica has heard of it
            size += answer.size
        return max(0, request.min_bytes - size)

    def park(self, bytes_missing: int) -> Parked:
        parked = Parked(holds_connection=True)
        view = self.view
        if self.session is None:
            for wanted in view.wanted.values():
                wanted.watch(self._partition(wanted))  # it was just read, so it is there

        def answer(at_deadline: bool) -> int:
            answers = self.read()
            missing = 0 if at_deadline else self.missing_in(answers)
            if not missing:
                view.wait = None
                parked.resolve(self.respond(answers))
            return missing

        def abandon() -> None:
            wait.cancel()
            view.wait = None
            if self.session is None:
                view.close()

        view.wait = wait = FetchWait(asyncio.get_running_loop(), bytes_missing, self.request.max_wait_ms, answer)
        parked.abandon = abandon
        if self.replica_id >= 0:
            parked.hurry = wait.finish  # a follower that sends more has something new to say
        return parked

    def respond(self, answers: Sequence[tuple[Wanted, PartitionAnswer]]) -> Raw:
        session = self.session
        if self.replica_id >= 0:
            self.view.answered_s = self.broker.clock.monotonic()
            self._note_sent(answers)
        elif self.budget is not None and self._is_too_much(self.budget, answers):
            return self._without_partitions()
        else:
            for wanted, answer in answers:
                if answer.records is not None and wanted.traffic is not None:
                    wanted.traffic.bytes_out += answer.records.length
        if session is None:
            self.view.close()
            return pack(self.call.version, 0, NO_FETCH_SESSION, [answer for _, answer in answers])
        told = []
        for wanted, answer in answers:
            known = (wanted.high_watermark, wanted.log_start_offset)
            offsets = (answer.high_watermark, answer.log_start_offset)
            worth_telling = (
                bool(answer.size or answer.error_code)
                or answer.diverging is not None
                or answer.preferred_replica != NO_REPLICA
            )
            if worth_telling or known != offsets or not self.incremental:
                told.append(answer)
            wanted.high_watermark, wanted.log_start_offset = offsets
            if answer.size:
                session.to_the_back(wanted)
            elif answer.records is not None and not worth_telling:
                session.mark_up_to_date(wanted)
        return pack(self.call.version, 0, session.id, told)

    def _is_too_much(self, budget: RateBudget, answers: Iterable[tuple[Wanted, PartitionAnswer]]) -> bool:
        """Charge the answer. The client of one that is too much waits, gets nothing, and is charged nothing."""
        now_ms = int(self.broker.clock.monotonic() * 1000)
        told = [answer for _, answer in answers if answer.size or answer.error_code or not self.incremental]
        size = pack(self.call.version, 0, NO_FETCH_SESSION, told).size
        until_paid_ms = budget.until_paid_ms(now_ms)
        wait_ms = budget.charge(size, now_ms)
        if wait_ms and until_paid_ms:
            # A single batch may be larger than all that comes at once: it is given to whoever has paid everything.
            self.call.throttle(min(wait_ms, until_paid_ms))
            budget.give_back(size, now_ms)
            return True
        self.call.throttle(wait_ms)
        return False

    def _without_partitions(self) -> Raw:
        """The session stays as it is, but a new one would begin with an answer that is not whole: it does not begin."""
        if self.session is None:
            self.view.close()
            return pack(self.call.version, 0, NO_FETCH_SESSION, ())
        if self.incremental:
            return pack(self.call.version, 0, self.session.id, ())
        self.broker.fetch_sessions.end(self.session.id)
        return pack(self.call.version, 0, NO_FETCH_SESSION, ())

    def _note_sent(self, answers: Iterable[tuple[Wanted, PartitionAnswer]]) -> None:
        throttle, now = self.broker.leader_throttle, self.broker.clock.monotonic()
        for wanted, answer in answers:
            if answer.size and wanted.traffic is not None:
                wanted.traffic.replication_bytes_out += answer.size
                if isinstance(wanted.watched, Partition) and self.replica_id in wanted.watched.adding:
                    wanted.traffic.reassignment_bytes_out += answer.size
        if not throttle.is_limited:
            return
        for wanted, answer in answers:
            if answer.size:
                name = wanted.topic[0] or self.broker.metadata.image.names_by_id.get(wanted.topic[1], "")
                throttle.note(name, wanted.request.partition, answer.size, now)


def _divergence(partition: Partition, asked: FetchPartition) -> tuple[int, int] | None:
    """Where the client's history parts from the log's, if the client said which epoch it fetched last."""
    if asked.last_fetched_epoch < 0:
        return None
    epoch, end_offset = partition.log.epoch_end_offset(asked.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise partition.log.out_of_range(asked.fetch_offset)
    if epoch < asked.last_fetched_epoch or end_offset < asked.fetch_offset:
        return epoch, end_offset
    return None
