"""A cluster of real brokers with a real ZooKeeper, as seen by the test that uses it."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ottla.testing.links import Links
from ottla.testing.running import TEST_SETTINGS, RunningBroker, SettingValue
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperEnsemble

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic, PartitionMetadata

SETTLE_SECONDS_MAX = 60.0
# librdkafka keeps a request for metadata for the one broker that it chose. If that one goes away before the request is
# sent, it is kept until its time is up, and never given to another broker: so ask for a short time, and ask again.
METADATA_TRY_SECONDS = 3.0
METADATA_SECONDS_MAX = 30.0
METADATA_PAUSE_SECONDS = 0.05

# A broker that is gone is noticed in seconds; what the ledger of a test waits for comes soon after.
CLUSTER_TEST_SETTINGS: Mapping[str, SettingValue] = {
    **TEST_SETTINGS,
    "zookeeper.session.timeout.ms": 3_000,
    "replica.lag.time.max.ms": 3_000,
}


class RunningCluster:
    """Brokers with the ids 1, 2, 3, ... Each can be killed, paused and started again; their addresses stay."""

    def __init__(
        self,
        data_dir: Path,
        *,
        brokers: int,
        zookeeper: ZooKeeperEnsemble,
        chroot: str = "",
        settings: Mapping[str, SettingValue] | None = None,
        racks: Sequence[str] = (),
        links: Links | None = None,
        for_tests: bool = True,
    ) -> None:
        self.data_dir = data_dir
        self.links = links
        """The network between the brokers, where it was asked for."""
        self.zookeeper = zookeeper
        self.brokers: dict[int, RunningBroker] = {}
        self._chroot = chroot
        self._for_tests = for_tests
        self._racks = racks
        self._settings: dict[str, SettingValue] = {
            **(CLUSTER_TEST_SETTINGS if for_tests else {}),
            "default.replication.factor": min(3, brokers),
            **(settings or {}),
        }
        self._admin: AdminClient | None = None
        self._listener: str | None = None
        self._client: Mapping[str, str | float | bool] = {}
        for number in range(1, brokers + 1):
            self.new_broker(number)

    def new_broker(self, number: int, settings: Mapping[str, SettingValue] | None = None) -> RunningBroker:
        """One broker more, which is not started yet."""
        assert number not in self.brokers, f"there is a broker {number}"
        own: dict[str, SettingValue] = {
            **self._settings,
            "node.id": number,
            "zookeeper.connect": self.zookeeper_connect,
        }
        if self.links is not None:
            own |= self.links.settings(number)
        if self._racks:
            own["broker.rack"] = self._racks[(number - 1) % len(self._racks)]
        directory = self.data_dir / f"broker-{number}"
        directory.mkdir(parents=True, exist_ok=True)
        self.brokers[number] = RunningBroker(directory, {**own, **(settings or {})}, for_tests=self._for_tests)
        return self.brokers[number]

    @property
    def zookeeper_connect(self) -> str:
        """The brokers' `zookeeper.connect`."""
        return self.zookeeper.connect + self._chroot

    @property
    def bootstrap(self) -> str:
        """Every broker that was ever started, running or not: what a client of the cluster would be given."""
        started = [each for each in self.brokers.values() if each.listeners]
        return ",".join(each.bootstrap_of(self._listener) if self._listener else each.bootstrap for each in started)

    def reach_by(self, listener: str, client: Mapping[str, str | float | bool]) -> None:
        """From now on use another listener than the first, with these settings of a client, to get in there."""
        self._listener, self._client, self._admin = listener, client, None

    @property
    def running(self) -> list[RunningBroker]:
        return [each for each in self.brokers.values() if each.running]

    def start(self, only: Collection[int] | None = None) -> Self:
        """Start the brokers that are down (of these), all together; returns when each accepts connections."""
        down = [each for number, each in self.brokers.items() if not each.running and (only is None or number in only)]
        for each in down:
            each.launch()
        for each in down:
            each.wait_until_ready()
        return self

    def kill(self) -> None:
        """SIGKILL to every broker."""
        for each in self.running:
            each.kill()

    def stop(self) -> None:
        """Every broker in order, one after the other."""
        for each in self.running:
            each.stop()

    def replace(self, number: int) -> RunningBroker:
        """Kill a broker and start it again with nothing on its disk."""
        broker = self.brokers[number]
        if broker.running:
            broker.kill()
        broker.wipe()
        return broker.start()

    def close(self) -> None:
        for each in self.running:
            with contextlib.suppress(ProcessLookupError):
                each.resume()  # one that a failed test left paused could not stop
            each.ask_to_stop()
        for each in self.brokers.values():
            each.close()

    # What the cluster says of itself, through a real client.

    @property
    def admin(self) -> "AdminClient":
        if self._admin is None:
            from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - the plugin of pytest loads nothing heavy

            from ottla.testing.load import RECONNECT, quiet  # noqa: PLC0415

            self._admin = AdminClient(
                {"bootstrap.servers": self.bootstrap, "socket.timeout.ms": 5_000, **RECONNECT, **self._client},
                logger=quiet,
            )
        return self._admin

    def create_topic(self, new: "NewTopic") -> None:
        """As an administrator does who is told that ZooKeeper is away, or that nobody knows: ask again."""
        from confluent_kafka import KafkaError, KafkaException  # noqa: PLC0415

        uncertain = False

        def created() -> bool:
            nonlocal uncertain
            try:
                self.admin.create_topics([new])[new.topic].result(SETTLE_SECONDS_MAX)
            except KafkaException as error:
                code = error.args[0].code()
                if code != KafkaError.KAFKA_STORAGE_ERROR:
                    if uncertain and code == KafkaError.TOPIC_ALREADY_EXISTS:
                        return True
                    raise
                uncertain = True
            else:
                return True
            return False

        wait_until(created, f"topic {new.topic} is created", seconds=SETTLE_SECONDS_MAX)

    def metadata(self) -> "ClusterMetadata":
        """The answer of whichever broker is asked."""
        told = wait_until(self._tried_metadata, "a broker tells the metadata", seconds=METADATA_SECONDS_MAX)
        assert told is not None
        return told

    def partitions(self, topic: str | None = None) -> "dict[tuple[str, int], PartitionMetadata]":
        return _partitions(self.metadata(), topic)

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """The id of the broker that leads a partition, once there is one among those that run."""

        def leader() -> int | None:
            found = self.partitions_if_told(topic).get((topic, partition))
            known: int = found.leader if found is not None else -1
            return known if known in self.brokers and self.brokers[known].running else None

        chosen = wait_until(
            leader,
            f"{topic}-{partition} has a leader that runs",
            seconds=SETTLE_SECONDS_MAX,
            pause=METADATA_PAUSE_SECONDS,
        )
        assert chosen is not None
        return chosen

    def controller_id(self) -> int:
        """The id of the controller, once there is one among those that run."""

        def controller() -> int | None:
            metadata = self._tried_metadata()
            known: int = metadata.controller_id if metadata is not None else -1
            return known if known in self.brokers and self.brokers[known].running else None

        chosen = wait_until(
            controller, "there is a controller that runs", seconds=SETTLE_SECONDS_MAX, pause=METADATA_PAUSE_SECONDS
        )
        assert chosen is not None
        return chosen

    def wait_until_settled(self, topic: str | None = None, *, seconds: float = SETTLE_SECONDS_MAX) -> None:
        """Brokers and controller are known, every partition (of a topic) is served, every replica is in sync."""

        problems: list[str] = []

        def settled() -> bool:
            problems[:] = self._unsettled(topic)
            return not problems

        try:
            wait_until(
                settled,
                f"the cluster has settled ({topic or 'all topics'})",
                seconds=seconds,
                pause=METADATA_PAUSE_SECONDS,
            )
        except AssertionError as error:
            raise AssertionError(f"{error}: {'; '.join(problems[:10])}") from None

    def _unsettled(self, topic: str | None) -> list[str]:
        """What is not as it should be, in words."""
        metadata = self._tried_metadata()
        if metadata is None:
            return ["no broker answers"]
        known = sorted(metadata.brokers)
        problems = [] if len(known) >= len(self.running) else [f"only brokers {known} are known"]
        if metadata.controller_id not in known:
            problems.append("there is no controller")
        partitions = _partitions(metadata, topic)
        problems += [
            f"{name}-{number} has replicas {each.replicas}, leader {each.leader}, in sync {each.isrs}"
            for (name, number), each in partitions.items()
            if each.leader not in self.brokers or sorted(each.isrs) != sorted(each.replicas)
        ]
        return problems or self._without_end(partitions)

    def _without_end(self, partitions: Collection[tuple[str, int]]) -> list[str]:
        """Those whose leaders are too new to know where they end: they will when their followers have asked them."""
        from confluent_kafka import KafkaException, TopicPartition  # noqa: PLC0415
        from confluent_kafka.admin import OffsetSpec  # noqa: PLC0415

        asked = {TopicPartition(*place): OffsetSpec.latest() for place in partitions}
        problems = []
        for place, told in (self.admin.list_offsets(asked, request_timeout=5.0) if asked else {}).items():
            try:
                told.result()
            except KafkaException as error:
                problems.append(f"{place.topic}-{place.partition}: {error}")
        return problems

    def wait_for_isr(self, topic: str, members: set[int], *, partition: int = 0, seconds: float = 60.0) -> None:
        """Until the in-sync replicas of one partition are just these."""

        def as_wanted() -> bool:
            found = self.partitions_if_told(topic).get((topic, partition))
            return found is not None and set(found.isrs) == members

        wait_until(
            as_wanted,
            f"the ISR of {topic}-{partition} is {sorted(members)}",
            seconds=seconds,
            pause=METADATA_PAUSE_SECONDS,
        )

    def _tried_metadata(self) -> "ClusterMetadata | None":
        from confluent_kafka import KafkaException  # noqa: PLC0415

        with contextlib.suppress(KafkaException):
            return self.admin.list_topics(timeout=METADATA_TRY_SECONDS)
        return None

    def partitions_if_told(self, topic: str) -> "dict[tuple[str, int], PartitionMetadata]":
        """None of them when no broker answers: the one that is asked may be paused, or cut off."""
        metadata = self._tried_metadata()
        return {} if metadata is None else _partitions(metadata, topic)


def _partitions(metadata: "ClusterMetadata", topic: str | None) -> "dict[tuple[str, int], PartitionMetadata]":
    return {
        (name, number): partition
        for name, found in metadata.topics.items()
        if topic in (None, name)
        for number, partition in found.partitions.items()
    }


@contextlib.contextmanager
def cluster(
    brokers: int = 3,
    *,
    settings: Mapping[str, SettingValue] | None = None,
    racks: Sequence[str] = (),
    zookeeper: ZooKeeperEnsemble | int = 1,
    cuttable: bool = False,
    started: Collection[int] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Iterator[RunningCluster]:
    """A cluster on 127.0.0.1 for as long as the `with` block lasts.

    `settings` are those of server.properties, for every broker; `racks` are given to the brokers in turn; `zookeeper`
    is how many servers to start for it, or an ensemble that runs already. With `cuttable` the connections between the
    brokers can be cut (`links`). `started` names the brokers to begin with, otherwise it is all of them. Data goes to a
    new directory that is removed at the end, or to `data_dir`, which stays.
    """
    directory = Path(data_dir) if data_dir is not None else Path(tempfile.mkdtemp(prefix="ottla-cluster-"))
    directory.mkdir(parents=True, exist_ok=True)
    owned = ZooKeeperEnsemble(directory, members=zookeeper) if isinstance(zookeeper, int) else None
    ensemble = owned if owned is not None else zookeeper
    assert isinstance(ensemble, ZooKeeperEnsemble)
    # Clusters that share a ZooKeeper keep apart by the root they are given in it.
    chroot = "" if owned is not None else f"/{directory.name}"
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
        if owned is not None:
            stack.callback(owned.close)
            owned.start()
        links = Links(range(1, brokers + 1)) if cuttable else None
        if links is not None:
            stack.callback(links.close)
        running = RunningCluster(
            directory, brokers=brokers, zookeeper=ensemble, chroot=chroot, settings=settings, racks=racks, links=links
        )
        stack.callback(running.close)
        running.start(started)
        running.controller_id()  # an admin client that finds none does not look again soon
        yield running
