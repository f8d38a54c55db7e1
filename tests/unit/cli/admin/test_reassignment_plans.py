"""Plans of kafka-reassign-partitions: read, written, proposed, compared with what is."""

import json
import uuid

import pytest

from ottla.cli.admin.reassignment_plans import (
    as_document,
    brokers_of,
    current_plan,
    parse_broker_list,
    parse_plan,
    parse_topics,
    propose,
)
from ottla.cli.admin.reassignment_progress import (
    DirectoryProgress,
    State,
    directory_progress,
    partition_progress,
    wanted_directories,
)
from ottla.cli.common.output import CommandError
from ottla.client.admin import PartitionDescription, TopicDescription
from ottla.client.replicas import Reassignment
from ottla.client.replication_throttles import FOLLOWER_REPLICAS, LEADER_REPLICAS, brokers_in, throttled_replicas
from ottla.model.names import TopicPartition
from ottla.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def plan_text(*entries: dict[str, object], version: int = 1) -> str:
    return json.dumps({"version": version, "partitions": entries})


def entry(partition: int = 0, replicas: object = (1, 2), **more: object) -> dict[str, object]:
    return {"topic": "a", "partition": partition, "replicas": replicas, **more}


def described(*replicas: list[int]) -> TopicDescription:
    return TopicDescription(
        "a",
        uuid.uuid4(),
        False,
        [PartitionDescription(number, brokers[0], 0, brokers, brokers) for number, brokers in enumerate(replicas)],
    )


def test_a_plan_is_read_and_written_alike() -> None:
    text = plan_text(entry(0, [1, 2]), entry(1, [2, 3], log_dirs=["any", "/disk"]))
    plan = parse_plan(text)
    assert plan[A0].replicas == [1, 2]
    assert plan[A1].directories == ["any", "/disk"]
    assert parse_plan(json.dumps(as_document(plan))) == plan


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "must read like"),
        ("[]", "must read like"),
        (plan_text(), "names no partition"),
        (plan_text(entry(), version=2), "version 2"),
        (plan_text(entry(), entry()), "a-0 twice"),
        (plan_text(entry(replicas=[])), "empty"),
        (plan_text(entry(replicas=[1, 1])), "twice"),
        (plan_text(entry(replicas="x")), "must read like"),
        (plan_text(entry(log_dirs=["any"])), "2 replicas and 1 log_dirs"),
        (plan_text(entry(log_dirs=["any", "relative"])), "absolute paths"),
        (plan_text({"topic": "a"}), "must read like"),
    ],
)
def test_what_is_wrong_with_a_plan_is_told(text: str, words: str) -> None:
    with pytest.raises(CommandError, match=words):
        parse_plan(text)


def test_topics_to_move() -> None:
    assert parse_topics('{"version": 1, "topics": [{"topic": "a"}, {"topic": "b"}]}') == ["a", "b"]
    for text, words in (
        ('{"topics": []}', "no topic"),
        ('{"topics": [{"topic": "a"}, {"topic": "a"}]}', "twice: a"),
        ('{"topics": ["a"]}', "must read like"),
        ('{"partitions": []}', "must read like"),
    ):
        with pytest.raises(CommandError, match=words):
            parse_topics(text)


def test_broker_lists() -> None:
    assert parse_broker_list("1,2,3") == [1, 2, 3]
    with pytest.raises(CommandError, match="twice"):
        parse_broker_list("1,1")
    with pytest.raises(CommandError, match="wants ids"):
        parse_broker_list("one")


def test_a_proposal_spreads_a_topic_and_keeps_its_replication_factor() -> None:
    topic = described(*([[1, 2]] * 6))
    proposed = propose([topic], {3: "x", 4: "x", 5: "y"})
    assert all(len(placed.replicas) == 2 and 5 in placed.replicas for placed in proposed.values())
    assert {placed.replicas[0] for placed in proposed.values()} == {3, 4, 5}
    assert propose([topic], {3: "x", 4: "x", 5: "y"}) == proposed
    with pytest.raises(CommandError, match="larger than the number of brokers"):
        propose([topic], {3: None})
    with pytest.raises(CommandError, match="disable-rack-aware"):
        propose([topic], {3: None, 4: "x"})


def test_progress_of_partitions() -> None:
    plan = parse_plan(plan_text(entry(0, [1, 2]), entry(1, [2, 3]), entry(2, [1]), entry(3, [1])))
    current = {A0: [1, 2], A1: [2, 3, 1], TopicPartition("a", 2): [2]}
    states = partition_progress(plan, current, {A1: Reassignment([2, 3, 1], [3], [1])})
    assert [each.state for each in states] == [State.COMPLETED, State.IN_PROGRESS, State.DIFFERENT, State.UNKNOWN]
    assert str(states[0]) == "Reassignment of partition a-0 is completed."
    assert str(states[1]) == "Reassignment of partition a-1 is still in progress."
    assert str(states[2]).endswith("but replica set is 2 rather than 1.")


def test_progress_of_directories() -> None:
    plan = parse_plan(plan_text(entry(0, [1, 2], log_dirs=["/d2", "any"]), entry(1, [1], log_dirs=["/d2"])))
    wanted = wanted_directories(plan)
    assert wanted == {1: {A0: "/d2", A1: "/d2"}}

    def directory(path: str, *partitions: tuple[int, bool]) -> DescribeLogDirsResult:
        found = [DescribeLogDirsPartition(number, is_future_key=future) for number, future in partitions]
        return DescribeLogDirsResult(log_dir=path, topics=[DescribeLogDirsTopic("a", found)])

    found = directory_progress(1, wanted[1], [directory("/d1", (1, False)), directory("/d2", (0, False), (1, True))])
    assert [each.in_progress for each in found] == [False, True]
    assert str(found[0]) == "Reassignment of replica a-0-1 completed successfully."
    assert str(found[1]) == "Reassignment of replica a-1-1 is still in progress."
    assert "is not being moved" in str(DirectoryProgress(A0, 1, "/d2", "/d1", None))
    assert "not found" in str(DirectoryProgress(A0, 1, "/d2", None, None))
    assert "instead of /d2" in str(DirectoryProgress(A0, 1, "/d2", "/d1", "/d3"))


def test_who_is_throttled() -> None:
    plan = brokers_of(parse_plan(plan_text(entry(0, [3, 1]), entry(1, [1, 2]))))
    current = {A0: [1, 2], A1: [2, 1]}
    assert throttled_replicas(plan, current) == {"a": {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}}
    assert brokers_in(plan, current) == [1, 2, 3]


def test_the_current_plan_is_what_topics_say() -> None:
    assert current_plan([described([1, 2], [2, 1])])[A1].replicas == [2, 1]
