"""What a mirror does beside copying: heartbeats, settings of topics, offsets of groups. Thin: `deciding` decides.

It runs in a thread of the driver. A cluster that does not answer is told once, and asked again in the next round.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets, list_groups
from ottla.client.producer_settings import producer_settings
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError, OttlaError
from ottla.model.names import TopicPartition
from ottla.pipelines.durations import seconds_of
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.deciding import checkpoints, forward_only
from ottla.pipelines.mirror.following import (
    HAS_MEMBERS,
    Looks,
    MirroredTopics,
    copy_groups,
    follow_starts,
    look,
    mirrored_topics,
)
from ottla.pipelines.mirror.formats import Checkpoint, Heartbeat, OffsetSync
from ottla.pipelines.mirror.offset_map import OffsetMap, from_record, to_tombstone
from ottla.pipelines.mirror.spec import Flow
from ottla.pipelines.mirror.topics import ensure_compacted, keep_acls, keep_settings
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.offsets import OffsetRange
from ottla.spark.reading.options import Subscription, parse_read_options
from ottla.spark.writing.copied import Note
from ottla.spark.writing.notes import send_notes

LOOK_SECONDS = 0.2
SEEN_SECONDS = 1.0
SEEN = "seen.json"
"""In a flow's folder: what was last known of the source."""
PAUSED = "paused"
"""In a flow's folder: as long as it is there the flow rests."""

Tell = Callable[[str, str], None]
"""The flow, and what there is to say."""


class FlowKeeper:
    """One flow's. `source` and `target` are settings of clients."""

    def __init__(
        self,
        flow: Flow,
        clusters: Sequence[str],
        source: Mapping[str, str],
        target: Mapping[str, str],
        tell: Tell,
        *,
        has_reverse: bool = False,
        folder: StateFolder | None = None,
    ) -> None:
        self.flow = flow
        self._folder = folder
        self._looks = Looks()
        self._has_reverse = has_reverse
        self._clusters = [*clusters]
        self._settings = {"source": producer_settings(source), "target": producer_settings(target)}
        self._target_options = {f"kafka.{name}": value for name, value in target.items()}
        self._source = client_settings(source)
        self._target = client_settings(target)
        self._tell = tell
        self._said: set[str] = set()
        self._made: set[str] = set()
        self.offset_map = OffsetMap()
        self._map_read_to: int | None = None
        self._sent: dict[tuple[str, str, int], Checkpoint] = {}
        self._synced: dict[TopicPartition, int] = {}
        self._jobs = [(seconds_of(flow.settings_interval), self._keep_settings)] if flow.settings else []
        if flow.acls:
            self._jobs.append((seconds_of(flow.settings_interval), self._keep_acls))
        if flow.is_standby:
            self._jobs.append((seconds_of(flow.settings_interval), self._follow_starts))
            self._jobs.append((SEEN_SECONDS, self._note_ends))
        if flow.group_offsets != "off":
            groups = self._copy_groups if flow.is_standby else self._keep_groups
            self._jobs.append((seconds_of(flow.group_interval), groups))
        if flow.heartbeats:
            self._jobs.append((seconds_of(flow.heartbeat_interval), self._beat))
        self._due = [0.0] * len(self._jobs)

    def look(self, now: float) -> None:
        """Do what is due."""
        if self._is_paused:
            return
        for number, (seconds, job) in enumerate(self._jobs):
            if now >= self._due[number]:
                self._due[number] = now + seconds
                self._attempt(job)

    @property
    def _is_paused(self) -> bool:
        return self._folder is not None and (self._folder.path / PAUSED).exists()

    def settle(self) -> None:
        """Do all of it once more: what was copied last counts, too."""
        if self._is_paused:
            return
        for _, job in self._jobs:
            self._attempt(job)

    def _attempt(self, job: Callable[[], None]) -> None:
        try:
            job()
        except (OttlaError, OSError) as error:
            self._say(f"{job.__name__.strip('_').replace('_', ' ')}: {error}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._tell(self.flow.name, text)

    # The jobs.

    def _beat(self) -> None:
        """Into the source, from where the flow brings it to the target. MirrorMaker's heartbeats are the reverse
        pair's: who writes into `east` is the pair west to east."""
        self._make(self._on_source(), naming.HEARTBEATS)
        beat = Heartbeat(self.flow.target, self.flow.source, time.time_ns() // 1_000_000)
        self._send("source", [Note(naming.HEARTBEATS, beat.key(), beat.value())])

    def _keep_settings(self) -> None:
        source, target = self._on_source(), self._on_target()
        for text in loop.run(keep_settings(source, target, self.flow, self._clusters)):
            self._say(text)
        if self._has_reverse:
            return  # topics with the target's prefix are what the other flow brings
        listed = loop.run(resolving.find_partitions(source, Subscription(pattern=".*")))
        for topic in naming.refused_loops(self.flow, {at.topic for at in listed}, self._clusters):
            self._say(f"{topic} would be a loop: by its name it comes from {self.flow.target}")

    def _keep_acls(self) -> None:
        for text in loop.run(keep_acls(self._on_source(), self._on_target(), self.flow, self._clusters)):
            self._say(text)

    def _mirrored(self) -> MirroredTopics:
        source = self._on_source()
        loop.run(source.metadata([]))
        return loop.run(mirrored_topics(self._on_target(), self._takes, source.cluster_id))

    def _takes(self, topic: str) -> bool:
        return naming.takes(self.flow, topic, self._clusters)

    def _copy_groups(self) -> None:
        mirrored = self._mirrored()
        wants = partial(naming.wants_group, self.flow)
        loop.run(copy_groups(self._on_source(), self._on_target(), wants, mirrored))

    def _follow_starts(self) -> None:
        loop.run(follow_starts(self._on_source(), self._on_target(), self._mirrored()))

    def _note_ends(self) -> None:
        """Also before the first batch is copied: whoever promotes right behind it is told what is missing."""
        mirrored = self._mirrored()
        seen = loop.run(look(self._on_source(), self._on_target(), self._takes, mirrored, self._looks))
        if self._folder is not None and seen.ends:
            self._folder.write(SEEN, msgspec.to_builtins(seen))

    def _keep_groups(self) -> None:
        """In this order: the map then knows every record that a group had read when it was asked."""
        committed = self._committed()
        self._read_map()
        whole = self.flow.start == "earliest"
        known = self.offset_map
        points = {group: checkpoints(group, offsets, known, whole=whole) for group, offsets in committed.items()}
        self._send_checkpoints([point for found in points.values() for point in found])
        if self.flow.group_offsets == "write":
            for group, found in points.items():
                self._write_group(group, found)

    def _committed(self) -> dict[str, dict[TopicPartition, int]]:
        source = self._on_source()
        groups = [found.group_id for found in loop.run(list_groups(source))]
        committed: dict[str, dict[TopicPartition, int]] = {}
        for group in groups:
            if naming.wants_group(self.flow, group):
                found = loop.run(group_offsets(source, group, stable=True))
                committed[group] = {partition: offset.offset for partition, offset in found.items()}
        return committed

    def _read_map(self) -> None:
        """What is new in the topic of the map, and MirrorMaker's syncs from it."""
        at = TopicPartition(naming.map_topic(self.flow), 0)
        ends = loop.run(resolving.latest(self._on_target(), [at], committed=True))
        if at not in ends:
            return  # nothing has been copied yet
        if self._map_read_to is None:
            self._map_read_to = loop.run(resolving.earliest(self._on_target(), [at]))[at]
        asked = {**self._target_options, "kafka.isolation.level": "read_committed", "subscribe": at.topic}
        options = parse_read_options(asked, streaming=False)
        for batch in read_range(OffsetRange(at, self._map_read_to, ends[at]), options):
            keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            found = [(key, value) for key, value in zip(keys, values, strict=True) if key and value]
            self.offset_map.add(from_record(*each) for each in found)
        self._map_read_to = ends[at]
        self._forget()
        self._sync()

    def _forget(self) -> None:
        """The map is as long as the target's logs: what retention has deleted there needs no translation."""
        known = self.offset_map
        targets = {at: target for at in known.partitions() if (target := known.target_of(at)) is not None}
        starts = loop.run(resolving.earliest(self._on_target(), targets.values()))
        let_go = [entry for at, target in targets.items() for entry in known.forget(at, starts.get(target, 0))]
        self._send("target", [to_tombstone(naming.map_topic(self.flow), entry) for entry in let_go])

    def _sync(self) -> None:
        topic = naming.offset_syncs_topic(self.flow)
        notes = []
        for partition in self.offset_map.partitions():
            last = self.offset_map.last(partition)
            if last is not None and self._synced.get(partition) != last.source:
                self._synced[partition] = last.source
                sync = OffsetSync(partition.topic, partition.partition, last.source, last.target)
                notes.append(Note(topic, sync.key(), sync.value()))
        if notes:
            self._make(self._on_source(), topic)
            self._send("source", notes)

    def _send_checkpoints(self, points: Iterable[Checkpoint]) -> None:
        topic = naming.checkpoints_topic(self.flow)
        new = [point for point in points if self._sent.get((point.group, point.topic, point.partition)) != point]
        if not new:
            return
        self._make(self._on_target(), topic)
        self._send("target", [Note(topic, point.key(), point.value()) for point in new])
        self._sent.update({(point.group, point.topic, point.partition): point for point in new})

    def _write_group(self, group: str, points: Sequence[Checkpoint]) -> None:
        """Only forward, and only while nobody is in the group: the coordinator itself refuses it otherwise."""
        if not points:
            return
        target = self._on_target()
        now = {partition: found.offset for partition, found in loop.run(group_offsets(target, group)).items()}
        moves = forward_only(points, now)
        if not moves:
            return
        try:
            loop.run(commit_offsets(target, group, moves))
        except ApiError as error:
            if error.code not in HAS_MEMBERS:
                raise

    # Both ends.

    def _on_source(self) -> Cluster:
        return shared_cluster(self._source)

    def _on_target(self) -> Cluster:
        return shared_cluster(self._target)

    def _make(self, cluster: Cluster, topic: str) -> None:
        if topic not in self._made:
            loop.run(ensure_compacted(cluster, self.flow, topic))
            self._made.add(topic)

    def _send(self, where: str, notes: Sequence[Note]) -> None:
        send_notes(notes, self._settings[where])


class Keeping:
    """The thread that looks after all flows of a mirror."""

    def __init__(self, keepers: Sequence[FlowKeeper]) -> None:
        self._keepers = keepers
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror-keeping", daemon=True)

    def __enter__(self) -> "Keeping":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()
        for keeper in self._keepers:
            keeper.settle()

    def _run(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            for keeper in self._keepers:
                keeper.look(time.monotonic())
