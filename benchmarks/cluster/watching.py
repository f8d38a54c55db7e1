"""What is watched while a broker dies: its registration, what the others answer, the first write to each partition."""

import re
import threading
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

from kazoo.client import KazooClient

from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.testing.ledger import Ledger, Stamp
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

METADATA_VERSION = 9
POLL_SECONDS = 0.01
LOG_TIME = "%Y-%m-%d %H:%M:%S,%f"
_DECISION = re.compile(
    r": (?P<changed>\d+) partition states changed, (?P<moved>\d+) leaders elected.*"
    r"begun after (?P<begun>[\d.]+) ms, decided in (?P<decided>[\d.]+) ms, committed in (?P<committed>[\d.]+) ms"
)


class FirstWrites(Ledger):
    """A ledger that notes when each partition first acknowledged something after a mark."""

    def __init__(self) -> None:
        super().__init__()
        self._marked = False
        self.first: dict[int, float] = {}

    def mark(self) -> None:
        self.first = {}
        self._marked = True

    def acknowledged(self, stamp: Stamp, offset: int) -> None:
        super().acknowledged(stamp, offset)
        if self._marked:
            self.first.setdefault(stamp.partition, time.monotonic())


class Registration:
    """Tells when the node of a broker in ZooKeeper has gone, which is when its session has expired."""

    def __init__(self, connect: str, broker: int) -> None:
        self.gone_at: float | None = None
        self._path = f"/brokers/ids/{broker}"
        self._client = KazooClient(hosts=connect)
        self._client.start(timeout=30)

        def changed(_: object) -> None:
            if self.gone_at is None:
                self.gone_at = time.monotonic()

        assert self._client.exists(self._path, watch=changed), f"there is no {self._path}"

    def wait(self, seconds: float = 60.0) -> float:
        wait_until(lambda: self.gone_at is not None, f"{self._path} has gone", seconds=seconds)
        assert self.gone_at is not None
        return self.gone_at

    def close(self) -> None:
        self._client.stop()
        self._client.close()


class Followers:
    """Asks each of these brokers over and over until it knows no partition of the topic that the dead one leads."""

    def __init__(self, brokers: Iterable[RunningBroker], topic: str, dead: int) -> None:
        self.known_at: dict[str, float] = {}
        self._topic, self._dead = topic, dead
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(each,), daemon=True) for each in brokers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)

    def wait(self, seconds: float = 120.0) -> float:
        """When the last of them knew."""
        wait_until(lambda: len(self.known_at) == len(self._threads), "every broker knows the leaders", seconds=seconds)
        return max(self.known_at.values())

    def _ask(self, broker: RunningBroker) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self._topic)])
        with WireConnection(broker.host, broker.port) as connection:
            while not self._stopping.wait(POLL_SECONDS):
                answer = connection.call(request, METADATA_VERSION, MetadataResponse)
                leaders = {each.leader_id for each in answer.topics[0].partitions}
                if leaders and -1 not in leaders and self._dead not in leaders:
                    self.known_at[broker.bootstrap] = time.monotonic()
                    return


class Decision(NamedTuple):
    """What the controller logged about it."""

    changed: int
    moved: int
    begun_ms: float
    decided_ms: float
    committed_ms: float


def decision_of(brokers: Sequence[RunningBroker], begun: float) -> Decision:
    """The largest decision since this time (of the clock), by the controller there was or by a new one."""
    found = wait_until(lambda: _decisions(brokers, begun), "a controller says what it decided", seconds=60)
    return max(found, key=lambda decision: decision.moved)


def _decisions(brokers: Sequence[RunningBroker], begun: float) -> list[Decision]:
    found: list[Decision] = []
    for broker in brokers:
        for line in broker.log_text().splitlines():
            each = _DECISION.search(line)
            if each is not None and datetime.strptime(line[:23], LOG_TIME).astimezone().timestamp() >= begun:
                found.append(
                    Decision(
                        int(each["changed"]), int(each["moved"]), float(each["begun"]), float(each["decided"]),
                        float(each["committed"]),
                    )
                )  # fmt: skip
    return found
