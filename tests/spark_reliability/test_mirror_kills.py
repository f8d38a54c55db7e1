"""Mirrors whose driver and brokers on either side are killed, and whose links are cut, again and again: under load with
transactions, with compaction and retention at work."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaException, Producer
from tests.chance import SOAK
from tests.committed import Record, read_committed
from tests.pipelines.standbys import Load, raw, values
from tests.pipelines.two_clusters import MAIN
from tests.spark.feeding import create_topic
from tests.spark_reliability.numbered import CLEANING, COMPACTED, EXPIRING, CopyReader, Numbered, leads_to, problems

from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.settings import client_settings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition as At
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.testing import RunningBroker, broker
from ottla.testing.links import Links
from ottla.testing.load import quiet
from ottla.testing.running import SettingValue
from ottla.testing.waiting import wait_until

KILLS = int(os.environ.get("OTTLA_SOAK_KILLS", "20"))
"""Of each: the driver, the source's broker, the target's; and so often each of the mirror's two links is cut."""
TOPIC, LATEST, RECENT, GROUP = "orders", "latest", "recent", "shop"
CLIENT = {"request.timeout.ms": "5000"}
"""Of the mirror, so that a link that is cut is noticed."""
EAST, WEST = 1, 2
PROGRESS_S_MAX = 180.0


class LastingLoad(Load):
    """Goes on after failures: a transaction whose end is not known is ended by the id's next producer."""

    def _transactional(self) -> None:
        number = 0
        own: dict[str, str | int] = {"transactional.id": f"{self._topic}-t", "message.timeout.ms": 30_000}
        while not self._ending.is_set():
            producer = Producer(self._settings | own, logger=quiet)
            try:
                producer.init_transactions(60)
                while not self._ending.wait(0.01):
                    producer.begin_transaction()
                    new = [b"t%06d" % (number + each) for each in range(3)]
                    number += 3
                    for partition in (1, 0, 1):
                        producer.produce(self._topic, new.pop(), partition=partition)
                    if number % 7 == 0:
                        producer.abort_transaction(30)
                    else:
                        producer.commit_transaction(30)
                        self.committed.append(b"t%06d" % number)
            except KafkaException:
                continue


@dataclass
class Mirroring:
    """`ottla mirror` in a process of its own, which is killed with everything that it has started."""

    path: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def log(self) -> Path:
        return self.path.with_suffix(".log")

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        words = ["mirror", str(self.path), "--state-dir", str(self.path.parent / "state"), "--master", "local[2]"]
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", MAIN, *words, "--conf", "spark.driver.memory=768m"],
                stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@dataclass
class Link:
    """Between the mirror and one of the clusters. While it is cut it holds back everything, and closes nothing."""

    links: Links
    number: int

    def cut(self) -> None:
        self.links.cut_off(self.number)

    def heal(self) -> None:
        self.links.heal()


@dataclass
class Aside:
    """A topic beside the one with transactions: what was written to it, and what came of that."""

    topic: str
    load: Numbered
    copy: CopyReader

    @property
    def written(self) -> dict[int, int]:
        return self.load.written

    @property
    def came(self) -> list[tuple[int, int]]:
        return self.copy.came

    def is_copied(self) -> bool:
        return bool(self.came) and self.came[-1][1] == max(self.written.values())

    def was_behind(self, source: int, target: int) -> bool:
        """Whether this is an end that the copy had, when the group had read more than that in the source."""
        read = [number for at, number in self.came if at < target]
        return not read or read[-1] < sum(1 for at in self.written if at < source)


@dataclass
class Kills:
    """Two clusters, a mirror between them, and load on the first."""

    east: RunningBroker
    west: RunningBroker
    links: Links
    asides: list[Aside]
    mirroring: Mirroring
    target: str
    chance: random.Random
    places: dict[At, list[int]] = field(default_factory=dict)
    """Where the group has stood in the source."""
    translated: list[tuple[At, int, int]] = field(default_factory=list)
    """Where it was seen in the target, and where it stood in the source then."""

    def run(self, kills: int) -> Load:
        links = [Link(self.links, number) for number in (EAST, WEST)]
        victims: list[RunningBroker | Mirroring | Link] = [self.east, self.west, self.mirroring, *links] * kills
        self.chance.shuffle(victims)
        self.mirroring.start()
        with contextlib.ExitStack() as running:
            load = running.enter_context(LastingLoad(self.east.bootstrap, TOPIC, patience_ms=300_000))
            for aside in self.asides:
                running.enter_context(aside.load)
            for victim in victims:
                self._wait_for_progress(load)
                self._move_group()
                self._strike(victim, load)
            self._wait_for_progress(load)
        self._move_group()
        return load

    def _strike(self, victim: "RunningBroker | Mirroring | Link", load: Load) -> None:
        if isinstance(victim, Link):
            wanted = len(load.acked) + self.chance.randint(50, 3_000)
            victim.cut()
            wait_until(lambda: len(load.acked) >= wanted, "records come in", seconds=PROGRESS_S_MAX, pause=0.05)
            victim.heal()
        else:
            victim.kill()
            victim.start()

    def _wait_for_progress(self, load: Load) -> None:
        """Records come in, and the mirror copies: what is killed next is at work."""
        wanted, copied = len(load.acked) + self.chance.randint(20, 200), sum(self.ends("west").values())

        def has_gone_on() -> bool:
            assert self.mirroring.runs, self.mirroring.log.read_text()
            return len(load.acked) >= wanted and sum(self.ends("west").values()) > copied

        wait_until(has_gone_on, f"the mirror goes on; see {self.mirroring.log}", seconds=PROGRESS_S_MAX, pause=0.1)

    def _move_group(self) -> None:
        """On to any place; and what the target says of it by now is noted."""
        asides = [At(aside.topic, 0) for aside in self.asides]
        beside = loop.run(resolving.latest(self.cluster("east"), asides, committed=True))
        for at, end in (self.ends("east") | beside).items():
            before = self.places.setdefault(at, [0])[-1]
            self.places[at].append(self.chance.randint(before, end))
        loop.run(commit_offsets(self.cluster("east"), GROUP, {at: known[-1] for at, known in self.places.items()}))
        newest = {self.there(at): known[-1] for at, known in self.places.items()}
        self.translated += [(at, offset, newest[at]) for at, offset in self.group().items()]

    def there(self, at: At) -> At:
        """Its copy."""
        return At(self.target.removesuffix(TOPIC) + at.topic, at.partition)

    def of_orders(self) -> dict[At, list[int]]:
        return {at: known for at, known in self.places.items() if at.topic == TOPIC}

    def check_asides(self, *, same_offsets: bool) -> None:
        """Everything came, once and in order, whatever was cleaned or went meanwhile; and groups stood right."""
        for aside in self.asides:
            wait_until(aside.is_copied, f"{aside.topic} is copied", seconds=300)
            compacted = aside.topic == LATEST
            assert problems(aside.written, aside.came, compacted=compacted, same_offsets=same_offsets) == []
            self._check_group(aside)
        wait_until(self._has_expired, "retention has been there", seconds=600, pause=0.5)
        left = len(read_committed(self.east.bootstrap, LATEST, 0))
        assert left < len(self.asides[0].written), "the cleaner has been there"

    def _has_expired(self) -> bool:
        return loop.run(resolving.earliest(self.cluster("east"), [At(RECENT, 0)])) != {At(RECENT, 0): 0}

    def _check_group(self, aside: Aside) -> None:
        here = At(aside.topic, 0)
        there, known = self.there(here), self.places[here]
        for place, offset, newest in self.translated:
            if place == there:
                exact = any(leads_to(aside.written, aside.came, source, offset) for source in known)
                assert exact or aside.was_behind(newest, offset), (place, offset)

        def is_at_the_last() -> bool:
            return leads_to(aside.written, aside.came, known[-1], self.group()[there])

        wait_until(is_at_the_last, f"the group is exactly where it is in {aside.topic}", seconds=60, pause=0.5)

    def group(self) -> dict[At, int]:
        """In the target."""
        found = loop.run(group_offsets(self.cluster("west"), GROUP))
        return {at: place.offset for at, place in found.items()}

    def cluster(self, name: str) -> Cluster:
        bootstrap = (self.east if name == "east" else self.west).bootstrap
        return shared_cluster(client_settings({"bootstrap.servers": bootstrap}))

    def ends(self, name: str) -> dict[At, int]:
        topic = TOPIC if name == "east" else self.target
        try:
            asked = resolving.latest(self.cluster(name), [At(topic, 0), At(topic, 1)], committed=True)
            return loop.run(asked)
        except OttlaError:
            return {}  # it has just been killed


def _linked(links: Links, number: int) -> dict[str, SettingValue]:
    return {"node.id": number, **CLEANING, **links.settings(number)}


@contextmanager
def killing(folder: Path, flow: dict[str, object], target: str) -> Iterator[Kills]:
    links = Links([EAST, WEST], for_clients=True)
    with contextlib.closing(links), broker(_linked(links, EAST)) as east, broker(_linked(links, WEST)) as west:
        create_topic(east.bootstrap, TOPIC, 2, None)
        create_topic(east.bootstrap, LATEST, 1, COMPACTED)
        create_topic(east.bootstrap, RECENT, 1, EXPIRING)
        prefix = target.removesuffix(TOPIC)
        asides = [
            Aside(each, Numbered(east.bootstrap, each), CopyReader(west.bootstrap, f"{prefix}{each}"))
            for each in (LATEST, RECENT)
        ]
        path = folder / "mirror.yaml"
        clusters = {
            name: {"bootstrap": links.address(number), "client": CLIENT}
            for name, number in (("east", EAST), ("west", WEST))
        }
        own: dict[str, object] = {
            "from": "east",
            "to": "west",
            "topics": [TOPIC, LATEST, RECENT],
            "groups": GROUP,
            "group_interval": "500 ms",
        }
        own |= flow
        settings = {"trigger": "100 ms"}
        path.write_text(yaml.safe_dump({"name": "m", "clusters": clusters, "flows": [own], "limits": settings}))
        mirroring = Mirroring(path)
        try:
            with asides[0].copy, asides[1].copy:
                yield Kills(east, west, links, asides, mirroring, target, random.Random(17))
        finally:
            mirroring.kill()


def unread(found: Sequence[Record], offset: int) -> int:
    """How many records were read by who stands here."""
    return next((index for index, each in enumerate(found) if each.offset >= offset), len(found))


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes minutes; make soak runs it")
@pytest.mark.timeout(3_600)
def test_a_standby_has_the_same_batches_after_every_kill(tmp_path: Path) -> None:
    started = time.monotonic()
    with killing(tmp_path, {"names": "keep", "offsets": "keep"}, TOPIC) as kills:
        load = kills.run(KILLS)
        ends = kills.ends("east")
        wait_until(lambda: kills.ends("west") == ends, f"all is copied; see {kills.mirroring.log}", seconds=300)
        for at in ends:
            assert raw(kills.cluster("west"), at) == raw(kills.cluster("east"), at)
        plain = [each for each in values(kills.west.bootstrap, TOPIC, 0) if each.startswith(b"p")]
        assert len(plain) == len(set(plain))
        assert set(load.acked) <= set(plain)
        for at, offset, newest in kills.translated:
            assert offset in kills.places[at] or offset < newest, (
                "it stands where it stood, or where the copy ended then"
            )
        kills.check_asides(same_offsets=True)
        last = {at: known[-1] for at, known in kills.places.items()}
        wait_until(lambda: kills.group() == last, "the group is where it is in the source", seconds=60, pause=0.5)
    assert load.committed
    print(_told(kills, load, ends, started))


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="takes minutes; make soak runs it")
@pytest.mark.timeout(3_600)
def test_a_mirror_has_every_record_once_and_groups_at_the_next_one_after_every_kill(tmp_path: Path) -> None:
    started = time.monotonic()
    with killing(tmp_path, {"provenance": False}, f"east.{TOPIC}") as kills:
        load = kills.run(KILLS)
        ends = kills.ends("east")
        both: dict[int, tuple[list[Record], list[Record]]] = {}

        def all_copied() -> bool:
            for at in ends:
                there = read_committed(kills.west.bootstrap, kills.target, at.partition)
                both[at.partition] = read_committed(kills.east.bootstrap, *at), there
            return all(len(ours) <= len(theirs) for ours, theirs in both.values())

        wait_until(all_copied, f"all is copied; see {kills.mirroring.log}", seconds=300, pause=1.0)
        for ours, theirs in both.values():
            assert [each.content() for each in theirs] == [each.content() for each in ours]
        assert set(load.acked) <= {each.value for each in both[0][1]}
        _check_groups(kills, both)
        kills.check_asides(same_offsets=False)
    assert load.committed
    print(_told(kills, load, ends, started))


def _check_groups(kills: Kills, both: dict[int, tuple[list[Record], list[Record]]]) -> None:
    """Wherever the group was seen in the target, it had read there what it had read at one of its places; or, where it
    was ahead of the mirror, all that was copied by then. Never is it behind a record that it has not read."""
    had_read = {
        at.partition: {unread(both[at.partition][0], offset) for offset in known}
        for at, known in kills.of_orders().items()
    }
    assert kills.translated
    for at, offset, newest in kills.translated:
        if at.topic != kills.target:
            continue
        ours, theirs = both[at.partition]
        read = unread(theirs, offset)
        assert read in had_read[at.partition] or read < unread(ours, newest), (at, offset)

    def is_at_the_last() -> bool:
        found = kills.group()
        return all(
            (place := found.get(At(kills.target, at.partition))) is not None
            and unread(both[at.partition][1], place) == unread(both[at.partition][0], known[-1])
            for at, known in kills.of_orders().items()
        )

    wait_until(is_at_the_last, "the group is exactly where it is in the source", seconds=60, pause=0.5)


def _told(kills: Kills, load: Load, ends: dict[At, int], started: float) -> str:
    seconds, places = time.monotonic() - started, len(kills.translated)
    beside = ", ".join(f"{len(each.written)} {each.topic}" for each in kills.asides)
    return (
        f"\n{KILLS} kills of the driver and of each broker, {KILLS} cuts of each link, in {seconds:.0f} s: "
        f"{sum(ends.values())} offsets, {beside}, "
        f"{len(load.acked)} acknowledged, {len(load.committed)} transactions, {places} places of a group compared"
    )
