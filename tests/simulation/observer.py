"""Sees everything: what ZooKeeper holds after every write and who wrote it, and which data may rightly be gone."""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from uuid import UUID

import msgspec
from tests.simulation.zookeeper_model import ZooKeeperModel
from tests.simulation.zookeeper_tree import Touched

from ottla.cluster.zookeeper.client import Check, Create, Delete, Operation, Result, Set
from ottla.model.names import TopicPartition, parse_topic_id

CONTROLLER_PATH = "/controller"
CONTROLLER_EPOCH_PATH = "/controller_epoch"
BROKERS_PATH = "/brokers/ids"
_TOPICS = "/brokers/topics/"
MIN_IN_SYNC = 2
"""min.insync.replicas of all topics."""


class _TopicDocument(msgspec.Struct):
    topic_id: str
    partitions: dict[str, tuple[int, ...]]


class State(msgspec.Struct, frozen=True):
    """Of a partition, as it stands in ZooKeeper."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int = 0


class StateWrite(NamedTuple):
    """One change of one partition's state."""

    partition: TopicPartition
    before: State | None
    after: State | None
    writer: str
    """The site of the broker that wrote it."""
    controller: str | None
    """The site of the broker that held /controller at that moment."""


class Observer:
    """The truth about the cluster's metadata. Brokers only ever know what it was."""

    def __init__(self, zookeeper: ZooKeeperModel) -> None:
        self.states: dict[TopicPartition, State] = {}
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.on_write: list[Callable[[StateWrite], None]] = []
        self.on_commit: list[Callable[[], None]] = []
        self.excused: dict[TopicPartition, int] = {}
        """Partitions of which every in-sync replica lost data at one time: what was acknowledged may be gone."""
        self.avoidable: set[TopicPartition] = set()
        """Those among them of which a replica had everything that was committed, and did not count as in sync."""
        self._damaged: dict[TopicPartition, set[int]] = {}
        self._complete: dict[TopicPartition, set[int]] = {}
        self._zookeeper = zookeeper
        self._apply = zookeeper.tree.apply
        self.now: Callable[[], int] = lambda: 0
        zookeeper.tree.apply = self._applied  # type: ignore[method-assign]

    def _applied(self, operations: Sequence[Operation], session: int) -> tuple[list[Result], Touched]:
        before = self._controller()
        results, touched = self._apply(operations, session)
        known = self._zookeeper._sessions.get(session)
        writer = known.name if known is not None else ""
        for operation in operations:
            if not isinstance(operation, Check) and operation.path.startswith(_TOPICS):
                self._note(operation, session, writer, before)
        for callback in self.on_commit:
            callback()
        return results, touched

    def _controller(self) -> str | None:
        node = self._zookeeper.tree.find(CONTROLLER_PATH)
        session = self._zookeeper._sessions.get(node.owner) if node is not None else None
        return session.name if session is not None else None

    def _note(self, operation: Create | Set | Delete, session: int, writer: str, controller: str | None) -> None:
        parts = operation.path.removeprefix(_TOPICS).split("/")
        data = None if isinstance(operation, Delete) else operation.data
        if len(parts) == 1:
            self._note_topic(parts[0], data)
        elif len(parts) == 4:
            partition = TopicPartition(parts[0], int(parts[2]))
            before = self.states.pop(partition, None)
            after = None if data is None else msgspec.json.decode(data, type=State)
            if after is not None:
                self.states[partition] = after
                if partition in self._damaged:
                    self._damaged[partition] &= set(after.isr)
                self._note_complete(partition, after, self._takes_back_claims(session, writer))
            write = StateWrite(partition, before, after, writer, controller)
            for callback in self.on_write:
                callback(write)
            self._judge(partition)

    def _note_topic(self, topic: str, data: bytes | None) -> None:
        if data is None:
            self.topic_ids.pop(topic, None)
            self.replicas = {tp: replicas for tp, replicas in self.replicas.items() if tp.topic != topic}
            return
        document = msgspec.json.decode(data, type=_TopicDocument)
        self.topic_ids[topic] = parse_topic_id(document.topic_id)
        for number, replicas in document.partitions.items():
            self.replicas[TopicPartition(topic, int(number))] = replicas

    # -- data that may rightly be lost

    def _takes_back_claims(self, session: int, writer: str) -> set[int]:
        """The broker that writes, if it is not registered yet: it says what it does not have, not that it stops."""
        number = int(writer.rpartition("-")[2]) if writer else -1
        registered = self._zookeeper.tree.find(f"{BROKERS_PATH}/{number}")
        return set() if registered is not None and registered.owner == session else {number}

    def _note_complete(self, partition: TopicPartition, state: State, incomplete: set[int]) -> None:
        """While fewer than min.insync.replicas are in sync nothing is committed: who left then still has all of it."""
        in_sync = set(state.isr) - self._damaged.get(partition, set())
        known = self._complete.get(partition, set()) if len(state.isr) < MIN_IN_SYNC else set()
        self._complete[partition] = (known - incomplete) | in_sync

    def machine_crashed(self, broker: int) -> None:
        """What this broker had not forced to disk is gone, wherever it counted as in sync."""
        for partition, state in self.states.items():
            self._complete.get(partition, set()).discard(broker)
            if broker in state.isr:
                self._damaged.setdefault(partition, set()).add(broker)
                self._judge(partition)

    def would_lose(self, broker: int) -> bool:
        """Whether a crash of this broker's machine now could lose what was acknowledged."""
        return any(
            broker in state.isr and not set(state.isr) - {broker} - self._damaged.get(partition, set())
            for partition, state in self.states.items()
        )

    def _judge(self, partition: TopicPartition) -> None:
        damaged = self._damaged.get(partition)
        state = self.states.get(partition)
        if damaged and state is not None and not set(state.isr) - damaged:
            self.excused[partition] = self.now()
            if self._complete.get(partition):
                self.avoidable.add(partition)
