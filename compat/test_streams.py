"""Kafka Streams with exactly_once_v2: a word count in two instances, one of which is killed and comes back."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from compat.peer.ecosystem import ecosystem_command
from compat.peer.program import Program, explained
from compat.peer.records import counts_by_key, new_topic, produce, read_committed, wait_for_records
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from ottla.testing.load import quiet
from ottla.testing.running import RunningBroker
from ottla.testing.waiting import wait_until

PARTITIONS = 4
LINES = 6_000
WORDS_IN_A_LINE = 3
VOCABULARY = [f"word-{number}" for number in range(200)]
SECONDS_MAX = 300.0

pytestmark = pytest.mark.usefixtures("ecosystem")


class Application:
    """The word count and its topics."""

    def __init__(self, bootstrap: str, name: str, state: Path) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.input = f"{name}-lines"
        self.output = f"{name}-counted"
        self._state = state

    def instance(self, number: int) -> Program:
        """Not started yet."""
        # Each has a folder of its own, as on machines of their own; one that is killed finds its folder again.
        arguments = (self.bootstrap, self.name, self.input, self.output, str(self._state / str(number)))
        return Program(f"instance {number}", ecosystem_command("WordCount", *arguments))

    @property
    def changelog(self) -> str:
        return f"{self.name}-counts-changelog"

    @property
    def repartition(self) -> str:
        return f"{self.name}-words-repartition"


@pytest.fixture
def application(ottla_broker: RunningBroker, unique: Callable[[str], str], tmp_path: Path) -> Application:
    made = Application(ottla_broker.bootstrap, unique("streams"), tmp_path)
    for topic in (made.input, made.output):
        new_topic(made.bootstrap, topic, PARTITIONS)
    return made


@pytest.fixture
def instances(application: Application) -> Iterator[list[Program]]:
    both = [application.instance(1), application.instance(2)]
    yield both
    for each in both:
        each.kill()


def _lines(seed: int) -> list[str]:
    chosen = random.Random(seed)
    return [" ".join(chosen.choices(VOCABULARY, k=WORDS_IN_A_LINE)) for _ in range(LINES // 3)]


def _feed(application: Application, lines: list[str]) -> None:
    produce(application.bootstrap, application.input, map(str.encode, lines), partitions=PARTITIONS)


def _wait_for_progress(instance: Program) -> None:
    instance.wait_for("it counts", "counted ", times=instance.count("counted ") + 2, seconds=SECONDS_MAX)


@pytest.mark.timeout(1800)
def test_word_count_through_a_kill(application: Application, instances: list[Program]) -> None:
    """Each word makes one record with the count so far: 1, 2, 3, ... with none missing and none twice."""
    parts = [_lines(seed) for seed in range(3)]
    expected = Counter(word for part in parts for line in part for word in line.split(" "))
    with explained(instances):
        _run_through_a_kill(application, instances, parts)
        wait_for_records(application.bootstrap, application.output, expected.total(), seconds=SECONDS_MAX)
        _expect_counted(application, expected)
        _expect_purged(application)
        for each in instances:
            each.end_input()
        assert [each.wait(120) for each in instances] == [0, 0]
    # Nothing was added on the way out, and the changelog tells the same as the output.
    _expect_counted(application, expected)
    kept = counts_by_key(read_committed(application.bootstrap, application.changelog))
    assert {word: counts[-1] for word, counts in kept.items()} == expected
    _expect_topics(application)


def _run_through_a_kill(application: Application, instances: list[Program], parts: list[list[str]]) -> None:
    for each in instances:
        each.start()
    for each in instances:
        each.wait_for("it runs", "state RUNNING", seconds=SECONDS_MAX)
    _feed(application, parts[0])
    for each in instances:
        _wait_for_progress(each)
    _feed(application, parts[1])
    _wait_for_progress(instances[0])
    instances[0].kill()
    _feed(application, parts[2])
    _wait_for_progress(instances[1])
    running = instances[0].count("state RUNNING")
    instances[0].start()
    instances[0].wait_for("it runs again", "state RUNNING", times=running + 1, seconds=SECONDS_MAX)


def _expect_counted(application: Application, expected: Counter[str]) -> None:
    """The last transactions may still be open when enough offsets are used: control records use some, too."""

    def counted() -> dict[str, list[int]]:
        return counts_by_key(read_committed(application.bootstrap, application.output))

    wait_until(
        lambda: sum(map(len, counted().values())) >= expected.total(), "every word is counted", seconds=SECONDS_MAX
    )
    assert counted() == {word: list(range(1, count + 1)) for word, count in expected.items()}


def _expect_purged(application: Application) -> None:
    """Streams deletes what it has read from the topics between its parts."""
    admin = AdminClient({"bootstrap.servers": application.bootstrap}, logger=quiet)
    places = [confluent_kafka.TopicPartition(application.repartition, number) for number in range(PARTITIONS)]

    def beginnings() -> list[int]:
        told = admin.list_offsets(dict.fromkeys(places, OffsetSpec.earliest()), request_timeout=30.0)
        return [each.result().offset for each in told.values()]

    wait_until(lambda: all(beginnings()), f"{application.repartition} is purged", seconds=SECONDS_MAX)


def _expect_topics(application: Application) -> None:
    admin = AdminClient({"bootstrap.servers": application.bootstrap}, logger=quiet)
    policies = {application.changelog: "compact", application.repartition: "delete"}
    for topic, policy in policies.items():
        resource = ConfigResource(ResourceType.TOPIC, topic)
        settings = admin.describe_configs([resource])[resource].result(30)
        assert settings["cleanup.policy"].value == policy
        assert len(admin.list_topics(topic, timeout=30.0).topics[topic].partitions) == PARTITIONS
