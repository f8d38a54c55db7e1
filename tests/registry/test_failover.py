"""Three instances, three clients that register, the instance that writes killed again and again, and
the topic compacted meanwhile."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.chance import SOAK

from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.testing.registry import RunningRegistry
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until

KILLS = 20 if SOAK else 3
SESSION_MS = "1500"


class Instances:
    """Started again at the ports that they had."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.running = [self._start("127.0.0.1:0") for _ in range(3)]
        for each in self.running:
            each.wait_until_ready()
        self.urls = [each.url for each in self.running]

    def _start(self, listen: str) -> RunningRegistry:
        return RunningRegistry(self._bootstrap, "--listen", listen, "--session-timeout-ms", SESSION_MS)

    def kill_the_writer(self) -> None:
        """The eligible instance with the smallest URL writes."""
        at = self.urls.index(min(self.urls))
        self.running[at].kill()
        self.running[at] = self._start(self.urls[at].removeprefix("http://"))
        self.running[at].wait_until_ready()

    def stop(self) -> None:
        for each in self.running:
            each.stop()


COMPACTED_OFTEN = {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}


@pytest.fixture
def instances(ottla_fresh_broker: RunningBroker) -> Iterator[Instances]:
    admin = AdminClient({"bootstrap.servers": ottla_fresh_broker.bootstrap})
    admin.create_topics([NewTopic("_schemas", 1, config=COMPACTED_OFTEN)])["_schemas"].result(30)
    started = Instances(ottla_fresh_broker.bootstrap)
    yield started
    started.stop()


class Registrar(threading.Thread):
    """Registers schema after schema, each until it is acknowledged, in a subject of its own and one of everybody."""

    def __init__(self, number: int, urls: list[str]) -> None:
        super().__init__()
        self._number = number
        self._client = RegistryClient(",".join(urls[number:] + urls[:number]))
        self.stopping = threading.Event()
        self.acknowledged: dict[tuple[str, str], tuple[int, int]] = {}

    def run(self) -> None:
        with self._client:
            self._register_all()

    def _register_all(self) -> None:
        count = 0
        while not self.stopping.is_set():
            count += 1
            for subject in (f"own-{self._number}", "shared"):
                text = json.dumps({"type": "enum", "name": "E", "symbols": [f"s{self._number}_{count}"]})
                self._register(subject, text)

    def _register(self, subject: str, text: str) -> None:
        while not self.stopping.is_set():
            with contextlib.suppress(RegistryError):
                made = self._client.register(subject, text)
                self.acknowledged[subject, text] = (made.schema_id, made.version)
                return


def _have_gone_on(registrars: list[Registrar], before: list[int]) -> bool:
    return all(len(each.acknowledged) > count + 3 for each, count in zip(registrars, before, strict=True))


@pytest.mark.ottla({"group.min.session.timeout.ms": 500, "log.cleaner.backoff.ms": 500})
def test_no_id_twice_none_lost_no_version_skipped(instances: Instances) -> None:
    with RegistryClient(",".join(instances.urls)) as client:
        client.call("PUT", "/config", body={"compatibility": "NONE"})
    registrars = [Registrar(number, instances.urls) for number in range(3)]
    for each in registrars:
        each.start()
    started = time.monotonic()
    try:
        for _ in range(KILLS):
            before = [len(each.acknowledged) for each in registrars]
            instances.kill_the_writer()
            wait_until(
                partial(_have_gone_on, registrars, before), "everybody registers again after the kill", seconds=120
            )
        ended = time.monotonic()
    finally:
        for each in registrars:
            each.stopping.set()
        for each in registrars:
            each.join(60)
    texts: dict[int, str] = {}
    for url in instances.urls:
        with RegistryClient(url) as asked:
            for registrar in registrars:
                for (subject, text), (schema_id, version) in registrar.acknowledged.items():
                    found = asked.version(subject, version)
                    assert json.loads(found.text) == json.loads(text), "what was acknowledged is there"
                    assert found.schema_id == schema_id
                    assert texts.setdefault(schema_id, found.text) == found.text, "one id, one schema"
            for subject in ("own-0", "own-1", "own-2", "shared"):
                versions = asked.versions(subject)
                assert versions == list(range(1, len(versions) + 1)), "no version is skipped"
    acknowledged = sum(len(each.acknowledged) for each in registrars)
    print(f"{KILLS} kills in {ended - started:.0f} s, {acknowledged} registrations acknowledged, {len(texts)} ids")
