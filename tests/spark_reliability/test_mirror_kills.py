"""Mirrors whose driver and whose brokers on either side are killed again and again, under load with transactions."""

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
from tests.committed import Record, read_committed
from tests.pipelines.standbys import Load, raw, values
from tests.spark.feeding import create_topic

from ottla.client.cluster import Cluster
from ottla.client.groups import commit_offsets, group_offsets
from ottla.client.settings import client_settings
from ottla.model.errors import OttlaError
from ottla.model.names import TopicPartition as At
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading import resolving
from ottla.testing import RunningBroker, broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

LONG = os.environ.get("OTTLA_SOAK") == "1"
KILLS = int(os.environ.get("OTTLA_SOAK_KILLS", "20"))
"""Of each: the driver, the source's broker, the target's."""
MAIN = "import sys; from ottla.cli.main import main; sys.exit(main())"
TOPIC, GROUP = "orders", "shop"
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
class Kills:
    """Two clusters, a mirror between them, and load on the first."""

    east: RunningBroker
    west: RunningBroker
    mirroring: Mirroring
    target: str
    chance: random.Random
    places: dict[At, list[int]] = field(default_factory=dict)
    """Where the group has stood in the source."""
    translated: list[tuple[At, int, int]] = field(default_factory=list)
    """Where it was seen in the target, and where it stood in the source then."""

    def run(self, kills: int) -> Load:
        victims: list[RunningBroker | Mirroring] = [self.east, self.west, self.mirroring] * kills
        self.chance.shuffle(victims)
        self.mirroring.start()
        with LastingLoad(self.east.bootstrap, TOPIC, patience_ms=300_000) as load:
            for victim in victims:
                self._wait_for_progress(load)
                self._move_group()
                victim.kill()
                victim.start()
            self._wait_for_progress(load)
        self._move_group()
        return load

    def _wait_for_progress(self, load: Load) -> None:
        """Records come in, and the mirror copies: what is killed next is at work."""
        wanted, copied = len(load.acked) + self.chance.randint(20, 200), sum(self.ends("west").values())
        said = f"the mirror goes on; see {self.mirroring.log}"
        wait_until(
            lambda: len(load.acked) >= wanted and sum(self.ends("west").values()) > copied, said,
            seconds=PROGRESS_S_MAX, pause=0.1,
        )  # fmt: skip

    def _move_group(self) -> None:
        """On to any place; and what the target says of it by now is noted."""
        for at, end in self.ends("east").items():
            before = self.places.setdefault(at, [0])[-1]
            self.places[at].append(self.chance.randint(before, end))
        loop.run(commit_offsets(self.cluster("east"), GROUP, {at: known[-1] for at, known in self.places.items()}))
        newest = {at.partition: known[-1] for at, known in self.places.items()}
        self.translated += [(at, offset, newest[at.partition]) for at, offset in self.group().items()]

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


@contextmanager
def killing(folder: Path, flow: dict[str, object], target: str) -> Iterator[Kills]:
    with broker() as east, broker() as west:
        create_topic(east.bootstrap, TOPIC, 2, None)
        path = folder / "mirror.yaml"
        clusters = {name: {"bootstrap": each.bootstrap} for name, each in (("east", east), ("west", west))}
        own = {"from": "east", "to": "west", "topics": TOPIC, "groups": GROUP, "group_interval": "500 ms", **flow}
        settings = {"trigger": "100 ms"}
        path.write_text(yaml.safe_dump({"name": "m", "clusters": clusters, "flows": [own], "limits": settings}))
        mirroring = Mirroring(path)
        try:
            yield Kills(east, west, mirroring, target, random.Random(17))
        finally:
            mirroring.kill()


def unread(found: Sequence[Record], offset: int) -> int:
    """How many records were read by who stands here."""
    return next((index for index, each in enumerate(found) if each.offset >= offset), len(found))


@pytest.mark.soak
@pytest.mark.skipif(not LONG, reason="takes minutes; make soak runs it")
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
        last = {at: known[-1] for at, known in kills.places.items()}
        wait_until(lambda: kills.group() == last, "the group is where it is in the source", seconds=60, pause=0.5)
    assert load.committed
    print(_told(kills, load, ends, started))


@pytest.mark.soak
@pytest.mark.skipif(not LONG, reason="takes minutes; make soak runs it")
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
    assert load.committed
    print(_told(kills, load, ends, started))


def _check_groups(kills: Kills, both: dict[int, tuple[list[Record], list[Record]]]) -> None:
    """Wherever the group was seen in the target, it had read there what it had read at one of its places; or, where it
    was ahead of the mirror, all that was copied by then. Never is it behind a record that it has not read."""
    had_read = {
        at.partition: {unread(both[at.partition][0], offset) for offset in known} for at, known in kills.places.items()
    }
    assert kills.translated
    for at, offset, newest in kills.translated:
        ours, theirs = both[at.partition]
        read = unread(theirs, offset)
        assert read in had_read[at.partition] or read < unread(ours, newest), (at, offset)

    def is_at_the_last() -> bool:
        found = kills.group()
        return all(
            (place := found.get(At(kills.target, at.partition))) is not None
            and unread(both[at.partition][1], place) == unread(both[at.partition][0], known[-1])
            for at, known in kills.places.items()
        )

    wait_until(is_at_the_last, "the group is exactly where it is in the source", seconds=60, pause=0.5)


def _told(kills: Kills, load: Load, ends: dict[At, int], started: float) -> str:
    seconds, places = time.monotonic() - started, len(kills.translated)
    return (
        f"\n{KILLS} kills of the driver and of each broker in {seconds:.0f} s: {sum(ends.values())} offsets, "
        f"{len(load.acked)} acknowledged, {len(load.committed)} transactions, {places} places of a group compared"
    )
