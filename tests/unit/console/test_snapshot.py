"""What pages are made from: rows of a look, health in words, what changed, what is left for some topics."""

from ottla.client.cluster import Address, Broker
from ottla.console import snapshot
from ottla.console.clusters import differences, read_disks
from ottla.console.history import History
from ottla.console.snapshot import RIPE_LOOKS, Directory, Disks, Snapshot
from ottla.model.names import TopicPartition
from ottla.monitoring.lag.book import LagBook
from ottla.monitoring.lag.rules import Rules
from ottla.monitoring.looking import Look
from ottla.monitoring.readings import GroupReading, PartitionPlace, Reading
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
BROKERS = {number: Broker(number, Address("host", 9090 + number), None) for number in (1, 2)}


def made(
    places: dict[TopicPartition, PartitionPlace] | None = None,
    *,
    brokers: dict[int, Broker] | None = None,
    disks: Disks | None = None,
    number: int = RIPE_LOOKS,
    commits: dict[TopicPartition, int] | None = None,
    before: tuple[dict[str, int], float] | None = None,
) -> Snapshot:
    well = {each: PartitionPlace(1, (1, 2), (1, 2)) for each in (A0, A1, B0)}
    found = well if places is None else places
    ends = dict.fromkeys(found, 100)
    groups = {"g": GroupReading(commits or {A0: 100, B0: 100}, {}, "Stable", 1)}
    topics = {at.topic: 2 for at in found}
    look = Look("id", 1, brokers or BROKERS, found, frozenset(), Reading(ends, groups, topics, whole=True), ())
    book = LagBook(Rules())
    book.note(look.reading, 1)
    judged = [group for name in book.groups if (group := book.group(name, 2)) is not None]
    return snapshot.make(look, judged, disks or Disks(), before, 5.0, number)


def test_rows() -> None:
    found = made(before=({"a": 100, "b": 100}, 10.0), disks=Disks((), {1: {A0: 7, B0: 1}, 2: {A0: 5}}, known=True))
    a, b = found.topics
    assert (a.partitions, a.replication, a.end_offsets, a.per_second, a.size_bytes, a.groups) == (2, 2, 200, 10.0, 7, 1)
    assert b.per_second == 0.0
    assert [(row.leaders, row.preferred, row.replicas) for row in found.brokers] == [(3, 3, 3), (0, 0, 3)]
    assert found.readers == {"a": ("g",), "b": ("g",)}


def test_all_is_well() -> None:
    assert made().health == (True, ())


def test_what_is_wrong_is_said() -> None:
    places = {A0: PartitionPlace(None, (1, 3), ()), B0: PartitionPlace(1, (1, 2), (1,))}
    disks = Disks(
        (Directory(1, "/d", "", 100, 5, 0), Directory(2, "/e", "KAFKA_STORAGE_ERROR", -1, -1, 0)), {}, known=True
    )
    words = "; ".join(made(places, disks=disks).health.words)
    for part in (
        "1 broker away: 3",
        "1 partition without",
        "2 partitions under",
        "1 log directory offline",
        "/d has less",
    ):
        assert part in words
    behind = {A0: 1, B0: 100}
    assert "1 group stopped" in "; ".join(made(commits=behind).health.words)
    assert made(commits=behind, number=1).health.good, "after one look nobody is judged"


def test_what_changed() -> None:
    before = made({A0: PartitionPlace(1, (1, 2), (1, 2))}, commits={A0: 100})
    now = made({B0: PartitionPlace(1, (1, 2), (1, 2))}, brokers={1: BROKERS[1]}, commits={B0: 100})
    assert differences(before, now) == ["broker 2 went away", "topic a was deleted", "topic b was created"]
    assert differences(now, now) == []


def test_what_is_left_of_some_topics() -> None:
    found = made(commits={A0: 90, B0: 50}, before=({"a": 0, "b": 0}, 1.0))
    left = snapshot.only(found, lambda topic: topic == "a")
    assert [row.name for row in left.topics] == ["a"]
    assert (left.groups[0].lag, left.groups[0].topics, left.per_second) == (10, ("a",), 200.0)
    assert set(left.look.places) == {A0, A1}
    assert snapshot.only(found, lambda topic: False).groups == ()


def test_disks_are_read() -> None:
    partition = DescribeLogDirsPartition(partition_index=0, partition_size=9, offset_lag=0, is_future_key=False)
    told = DescribeLogDirsResult(
        error_code=0, log_dir="/d", topics=[DescribeLogDirsTopic(name="a", partitions=[partition])],
        total_bytes=100, usable_bytes=50,
    )  # fmt: skip
    disks = read_disks([(1, [told]), (2, [])])
    assert disks.sizes == {1: {A0: 9}}
    assert disks.directories == (Directory(1, "/d", "", 100, 50, 9),)
    assert disks.known


def test_history_is_bounded_and_forgets() -> None:
    history = History(points=3)
    for end in range(5):
        history.note(made(commits={A0: 100 - end, B0: 100}))
    assert history.lag_of("g") == [2, 3, 4]
    assert history.lag_of("unknown") == []
    history.note(made()._replace(groups=()))
    assert history.lag_of("g") == []
