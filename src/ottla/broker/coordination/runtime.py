"""The group coordinator: finds the partition of a group, lets its machine decide, and does what was decided.

Appends are made at once, in the order of the requests; what they change is visible from then on, and answers go out
when the append is committed. Where it is committed at once (one replica) nothing here waits, and heartbeats, commits
and offset fetches are plain function calls.
"""

import asyncio
import logging
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from ottla.broker.coordination.coordinator import Coordinator, T
from ottla.broker.coordination.effects import Decision, Now, SetTimer, TimerKey
from ottla.broker.coordination.groups import describing, offsets
from ottla.broker.coordination.groups.consumer.events import ConsumerAnswer, ConsumerHeartbeat
from ottla.broker.coordination.groups.consumer.rules import ConsumerRules, GroupTimes
from ottla.broker.coordination.groups.consumer.topics import KnownTopic, KnownTopics
from ottla.broker.coordination.groups.events import Commit, GroupRules, Join, Joined, Leave, Left, Sync, Synced
from ottla.broker.coordination.groups.machine import GroupMachine
from ottla.broker.coordination.groups.offsets import Entry
from ottla.broker.coordination.loading import LoadedLog
from ottla.broker.coordination.log import CoordinatorLog
from ottla.broker.coordination.machine_shard import in_batches
from ottla.broker.coordination.scheduler import Scheduler
from ottla.broker.coordination.shard import Producer, Shard
from ottla.cluster.image import TopicImage
from ottla.config.broker import BrokerSettings
from ottla.config.group import resolve_group
from ottla.model.clock import Clock
from ottla.model.errors import ApiError, ErrorCode
from ottla.model.names import CONSUMER_OFFSETS, format_topic_id
from ottla.protocol.consumer_group_records import GroupEpochKey
from ottla.protocol.coordinator_records import STRING_BYTES_MAX, OffsetCommitKey, OffsetCommitValue
from ottla.protocol.records import Codec

logger = logging.getLogger(__name__)


def consumer_rules(settings: BrokerSettings, group_configs: Mapping[str, Mapping[str, str]]) -> ConsumerRules:
    policy = settings.group_consumer_migration_policy
    own = {name: resolve_group(configs, settings) for name, configs in group_configs.items()}
    return ConsumerRules(
        is_enabled="consumer" in settings.group_coordinator_rebalance_protocols,
        times=GroupTimes(settings.group_consumer_session_timeout_ms, settings.group_consumer_heartbeat_interval_ms),
        times_of_groups={
            name: GroupTimes(group.consumer_session_timeout_ms, group.consumer_heartbeat_interval_ms)
            for name, group in own.items()
        },
        max_size=settings.group_consumer_max_size,
        assignors=tuple(settings.group_consumer_assignors),
        can_upgrade=policy in ("bidirectional", "upgrade"),
        can_downgrade=policy in ("bidirectional", "downgrade"),
    )


def _new_epochs(records: Iterable[object]) -> int:
    return sum(isinstance(entry, tuple) and isinstance(entry[0], GroupEpochKey) for entry in records)


def _offsets_dropped(entries: Iterable[Entry]) -> int:
    return sum(isinstance(key, OffsetCommitKey) for key, _ in entries)


class GroupCoordinator(Coordinator[Shard, LoadedLog]):
    def __init__(
        self,
        log: CoordinatorLog,
        settings: Callable[[], BrokerSettings],
        clock: Clock,
        scheduler: Scheduler | None = None,
        chance: random.Random | None = None,
    ) -> None:
        super().__init__(log, settings, clock, scheduler)
        self._chance = chance or random.Random()  # noqa: S311 (member ids are no secrets)
        self._topics = KnownTopics()
        self._group_configs: Mapping[str, Mapping[str, str]] = {}
        self._rules = GroupRules()
        self._rules_source: BrokerSettings | None = None

    def _new_id(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._chance.randbytes(16), version=4)

    # Requests of members

    def join(self, event: Join) -> asyncio.Future[Joined]:
        """Ticket and random part of the event are filled in here."""
        shard, machine = self._find(event.group_id)
        ticket, answer = self._ticket()
        event = msgspec.structs.replace(event, ticket=ticket, unique=str(self._new_id()))
        self._perform(shard, machine.on_join(event, self._now(), self._live_rules()))
        return answer

    def sync(self, event: Sync) -> asyncio.Future[Synced]:
        shard, machine = self._find(event.group_id)
        ticket, answer = self._ticket()
        self._perform(
            shard, machine.on_sync(msgspec.structs.replace(event, ticket=ticket), self._now(), self._live_rules())
        )
        return answer

    def leave(self, event: Leave) -> asyncio.Future[Left]:
        shard, machine = self._find(event.group_id)
        ticket, answer = self._ticket()
        event = msgspec.structs.replace(event, ticket=ticket)
        self._perform(shard, machine.on_leave(event, self._now(), self._live_rules()))
        return answer

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        try:
            shard, machine = self._find(group_id)
        except ApiError as error:
            # A member must not give up its partitions only because we are still reading who is a member.
            return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code
        now, rules = self._now(), self._live_rules()
        code, timers = machine.heartbeat(group_id, member_id, instance_id, generation, now, rules)
        for timer in timers:
            self._set_timer(shard, timer)
        return code

    def consumer_heartbeat(self, event: ConsumerHeartbeat) -> asyncio.Future[ConsumerAnswer]:
        """Ticket and random part of the event are filled in here."""
        shard, machine = self._find(event.group_id)
        ticket, answer = self._ticket()
        event = msgspec.structs.replace(event, ticket=ticket, unique=format_topic_id(self._new_id()))
        self._perform(shard, machine.consumer.on_heartbeat(event, self._now(), self._live_rules()))
        return answer

    # Offsets

    def commit(self, event: Commit) -> list[ErrorCode] | asyncio.Future[list[ErrorCode]]:
        """One error for each offset of the request. Raises ApiError if it is refused as a whole."""
        shard, machine = self._find(event.group_id, may_be_empty=True)
        now = self._now()
        committed, timer = machine.commit(event, now, self._live_rules())
        if timer is not None:
            self._set_timer(shard, timer)
        if committed.records:
            producer = Producer(event.producer_id, event.producer_epoch) if event.is_transactional else None
            self._write(shard, committed.records, now, producer)
            self.counts.commits += len(committed.records)
        return self._when_committed(shard, committed.errors)

    def fetch_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int, uuid.UUID]]
    ) -> list[OffsetCommitValue | None] | asyncio.Future[list[OffsetCommitValue | None]]:
        """What is committed for each (topic, partition, topic id).

        Nothing that could still be lost is told, nor anything that was replaced before it was asked for.
        """
        shard, machine = self._find(group_id, may_be_empty=True)
        group = machine.find(group_id)
        if group is None:
            return self._when_certain(shard, [None for _ in partitions])
        return self._when_certain(shard, [offsets.find(group, *partition) for partition in partitions])

    def check_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether a member may fetch offsets of its group. Who does not say that it is a member always may."""
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        _, machine = self._find(group_id, may_be_empty=True)
        group = machine.consumer.groups.get(group_id)
        if group is None:
            return ErrorCode.NONE
        member = group.members.get(member_id or "")
        return ErrorCode.UNKNOWN_MEMBER_ID if member is None else group.check_epoch(member, member_epoch)

    def unstable(self, group_id: str) -> frozenset[tuple[str, int]]:
        """The partitions of which a transaction that has not ended holds a newer offset.

        Ask in the same moment as for the offsets: a transaction may end while they are waited for.
        """
        _, machine = self._find(group_id, may_be_empty=True)
        return frozenset((key.topic, key.partition) for key in machine.pending.of_group(group_id))

    def complete_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int = 1,
    ) -> asyncio.Future[None] | None:
        """End a producer's transaction on one partition of the topic: its offsets count from now on, or never.

        Raises ApiError, having done nothing, if this broker cannot do it (now).
        """
        shard = self._shards.get(partition)
        if not self._is_active or shard is None or shard.failed:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._log.check_led(partition, shard.epoch)
        if shard.machine is None:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        committed = shard.end_transaction(
            Producer(producer_id, producer_epoch),
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            transaction_version=transaction_version,
        )
        if committed is not None:
            shard.last_commit = self._follow(shard, committed)
        return self._when_committed(shard, None)

    def fetch_all_offsets(
        self, group_id: str
    ) -> dict[str, dict[int, OffsetCommitValue]] | asyncio.Future[dict[str, dict[int, OffsetCommitValue]]]:
        shard, machine = self._find(group_id, may_be_empty=True)
        group = machine.find(group_id)
        known = {} if group is None else {topic: dict(partitions) for topic, partitions in group.offsets.items()}
        return self._when_certain(shard, known)

    def delete_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]]
    ) -> list[ErrorCode] | asyncio.Future[list[ErrorCode]]:
        shard, machine = self._find(group_id)
        deleted = machine.delete_offsets(group_id, partitions)
        if deleted.records:
            self._write(shard, deleted.records, self._now())
            self.counts.deletions += len(deleted.records)
        return self._when_committed(shard, deleted.errors)

    # Administration

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[describing.ListedGroup]:
        if not self._is_active:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {kind.strip().lower() for kind in types}
        found = []
        for shard in self._shards.values():
            if shard.is_to_load:
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            for group in () if shard.machine is None else shard.machine.all_groups():
                listed = describing.listed(group)
                if wanted_states and listed.state.lower() not in wanted_states:
                    continue
                if not wanted_types or listed.group_type in wanted_types:
                    found.append(listed)
        return found

    def describe_group(self, group_id: str) -> describing.DescribedGroup | None:
        """None if there is no such group."""
        _, machine = self._find(group_id, may_be_empty=True)
        group = machine.groups.get(group_id)
        return None if group is None else describing.described(group)

    def describe_consumer_group(self, group_id: str) -> describing.DescribedConsumerGroup | None:
        """None if there is no such group of the consumer protocol."""
        _, machine = self._find(group_id)
        group = machine.consumer.groups.get(group_id)
        return None if group is None else describing.described_consumer(group, self._live_rules())

    def on_group_configs_changed(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Groups with settings of their own; they hold from the next heartbeat on."""
        self._group_configs = configs
        self._rules_source = None

    def on_topics_changed(self, topics: Mapping[str, TopicImage]) -> None:
        """Consumer groups are assigned anew when their next member speaks."""
        self._topics = KnownTopics(
            lambda: {name: KnownTopic(topic.topic_id, len(topic.partitions)) for name, topic in topics.items()}
        )
        self._rules_source = None

    def delete_group(self, group_id: str) -> asyncio.Future[None] | None:
        shard, machine = self._find(group_id, may_be_empty=True)
        entries = machine.delete_group(group_id)
        for batch in in_batches(entries):
            self._write(shard, batch, self._now())
        self.counts.deletions += _offsets_dropped(entries)
        return self._when_committed(shard, None)

    def on_topics_deleted(self, names: Iterable[str]) -> None:
        """Forget offsets of topics that are gone, so that new topics of the same names begin anew."""
        topics = list(names)
        if CONSUMER_OFFSETS in topics:
            self._unload_all()
        for shard in self._shards.values():
            if shard.machine is None:
                continue
            try:
                for batch in in_batches(shard.machine.delete_topics(topics)):
                    self._write(shard, batch, self._now())
            except ApiError as error:
                logger.warning(
                    "%s-%d: Cannot remove the committed offsets of deleted topics: %s",
                    shard.TOPIC,
                    shard.partition,
                    error,
                )

    async def expire(self) -> None:
        """Let go of offsets that were kept long enough, and of groups with nothing left."""
        for shard in list(self._shards.values()):
            if shard.machine is None:
                continue
            try:
                for entries in shard.machine.expire(self._now(), self._live_rules()):
                    for batch in in_batches(entries):
                        self._write(shard, batch, self._now())
                    self.counts.expirations += _offsets_dropped(entries)
                    await asyncio.sleep(0)
            except ApiError as error:
                logger.warning("%s-%d: Cannot remove expired offsets: %s", shard.TOPIC, shard.partition, error)

    # Doing what was decided

    def _perform(self, shard: Shard, decision: Decision) -> None:
        step: Decision | None = decision
        while step is not None:
            if step.records:
                try:
                    self._write(shard, step.records, self._now())  # type: ignore[arg-type]
                except ApiError as error:
                    self._fail([*(reply.ticket for reply in step.replies), *step.tickets_if_lost], error.code)
                    for timer in step.timers_if_lost:
                        self._set_timer(shard, timer)
                    return
                self.counts.consumer_rebalances += _new_epochs(step.records)
            self.counts.rebalances += step.rebalances
            for note in step.notes:
                logger.info("%s", note)
            for timer in step.timers:
                self._set_timer(shard, timer)
            if step.replies:
                self._release(shard, step)
            step = step.then() if step.then is not None else None

    def _write(self, shard: Shard, entries: list[Entry], now: Now, producer: Producer | None = None) -> None:
        self._written(shard, lambda: shard.write(entries, now.wall, self._codec(), producer))

    def _release(self, shard: Shard, step: Decision) -> None:
        if shard.last_commit is None:
            self._answer_all(step)
        else:
            self._after_commit(shard, [ticket for ticket, _ in step.replies], lambda: self._answer_all(step))

    def _answer_all(self, step: Decision) -> None:
        for ticket, result in step.replies:
            self._answer(ticket, result)

    # Reading

    def _when_certain(self, shard: Shard, result: T) -> T | asyncio.Future[T]:
        """The result, once it is certain that this broker was the coordinator when it was asked.

        One that was deposed without knowing it would tell old offsets, and whoever goes on from them does again what
        was done. So where there may be a successor something is committed first; those who ask meanwhile wait for
        the next such record, together.
        """
        if not self._log.may_be_deposed(shard.partition):
            return self._when_committed(shard, result)
        ticket, answer = self._ticket()
        shard.readers.append((ticket, result))
        shard.unanswered.add(ticket)
        if not shard.is_proving:
            self._prove(shard)
        return answer

    def _prove(self, shard: Shard) -> None:
        readers, shard.readers = shard.readers, []
        tickets = [ticket for ticket, _ in readers]
        try:
            self._written(shard, lambda: shard.write_nothing(self._clock.now_ms()))
        except ApiError as error:
            shard.unanswered.difference_update(tickets)
            self._fail(tickets, error.code)
            return

        def answer() -> None:
            shard.unanswered.difference_update(tickets)
            for ticket, result in readers:
                self._answer(ticket, result)

        if shard.last_commit is None:
            answer()
            return
        shard.is_proving = True
        self._after_commit(shard, tickets, answer)
        shard.last_commit.add_done_callback(lambda _: self._prove_again(shard))

    def _prove_again(self, shard: Shard) -> None:
        shard.is_proving = False
        if shard.readers and self._is_current(shard):
            self._prove(shard)

    # Time

    def _set_timer(self, shard: Shard, timer: SetTimer) -> None:
        earlier = shard.timers.get(timer.key)
        if earlier is not None:
            earlier.cancel()
        shard.timers[timer.key] = self._scheduler.call_at(timer.at, lambda: self._fire(shard, timer.key))

    def _fire(self, shard: Shard, key: TimerKey) -> None:
        shard.timers.pop(key, None)
        if shard.machine is not None:
            self._perform(shard, shard.machine.on_timer(key, self._now(), self._live_rules()))

    def _live_rules(self) -> GroupRules:
        settings = self._settings()
        if settings is not self._rules_source:
            self._rules_source = settings
            self._rules = GroupRules(
                initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
                max_size=settings.group_max_size,
                min_session_timeout_ms=settings.group_min_session_timeout_ms,
                max_session_timeout_ms=settings.group_max_session_timeout_ms,
                offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
                offset_metadata_max_bytes=settings.offset_metadata_max_bytes,
                consumer=consumer_rules(settings, self._group_configs),
                topics=self._topics,
            )
        return self._rules

    # Shards

    def _find(self, group_id: str, *, may_be_empty: bool = False) -> tuple[Shard, GroupMachine]:
        """The shard that answers for a group. Offsets may be kept under the empty name, as old clients do."""
        if self._is_active and (not (group_id or may_be_empty) or len(group_id) > STRING_BYTES_MAX):
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        shard = self._shard_of(group_id)
        assert shard.machine is not None
        return shard, shard.machine

    def _new_shard(self, partition: int, epoch: int) -> Shard:
        return Shard(partition, epoch, self._log)

    def _read(self, chunks: Iterator[bytes | memoryview]) -> LoadedLog:
        loaded = LoadedLog()
        loaded.replay(chunks)
        return loaded

    def _install(self, shard: Shard, loaded: LoadedLog) -> None:
        shard.install(loaded)
        assert shard.machine is not None
        self._perform(shard, shard.machine.on_loaded(self._now(), self._live_rules()))
        self._start_snapshot_if_due(shard)

    def _removed(self, machine: GroupMachine) -> None:
        self._answer_all(machine.on_unloaded(ErrorCode.NOT_COORDINATOR, self._now()))

    def _codec(self) -> Codec:
        return Codec(self._settings().offsets_topic_compression_codec)

    def _commit_timeout_ms(self) -> int:
        return self._settings().offsets_commit_timeout_ms
