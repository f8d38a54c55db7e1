"""kafka-topics against a real broker."""

import json
from collections.abc import Callable

import pytest

from ottla.cli.admin.topics import parse_assignment
from ottla.cli.common.output import CommandError
from ottla.cli.common.topic_filter import TopicPattern
from ottla.cli.main import main
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def topics(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["topics", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


def describe(topics: Callable[..., int], capsys: Captured, *arguments: str) -> list[str]:
    assert topics("--describe", *arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.one_broker("shows the number of replicas")
def test_create_and_describe_in_kafkas_layout(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    name = unique("created")
    assert topics("--create", "--topic", name, "--partitions=2", "--config", "retention.ms=5000") == 0
    assert capsys.readouterr().out == f"Created topic {name}.\n"
    summary, *partitions = describe(topics, capsys, "--topic", name)
    fields = dict(field.split(": ", 1) for field in summary.split("\t"))
    assert list(fields) == ["Topic", "TopicId", "PartitionCount", "ReplicationFactor", "Configs"]
    assert (fields["Topic"], fields["PartitionCount"], fields["ReplicationFactor"]) == (name, "2", "1")
    assert "retention.ms=5000" in fields["Configs"].split(",")
    assert len(fields["TopicId"]) == 22
    assert partitions == [
        f"\tTopic: {name}\tPartition: {n}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: " for n in range(2)
    ]
    assert describe(topics, capsys, "--topic-id", fields["TopicId"]) == [summary, *partitions]


def test_creating_twice_fails_unless_allowed(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    name = unique("twice")
    assert topics("--create", "--topic", name) == 0
    assert topics("--create", "--topic", name) == 1
    assert "--if-not-exists" in capsys.readouterr().err
    assert topics("--create", "--topic", name, "--if-not-exists") == 0
    assert capsys.readouterr().out == ""


def test_list_takes_a_pattern_and_hides_internal_topics_on_demand(
    topics: Callable[..., int], capsys: Captured, unique: Unique, ottla_broker: RunningBroker
) -> None:
    one, two = unique("list-a"), unique("list-b")
    for name in (one, two):
        assert topics("--create", "--topic", name) == 0
    group = unique("group")
    assert main(["consumer-groups", "--bootstrap-server", ottla_broker.bootstrap, "--reset-offsets", "--execute",
                 "--group", group, "--topic", one, "--to-latest"]) == 0  # fmt: skip
    capsys.readouterr()
    assert topics("--list", "--topic", f"{one},{two}") == 0
    assert capsys.readouterr().out.splitlines() == [one, two]
    assert topics("--list", "--topic", one[:-1]) == 0
    assert one not in capsys.readouterr().out.splitlines()
    assert topics("--list") == 0
    assert "__consumer_offsets" in capsys.readouterr().out.splitlines()
    assert topics("--list", "--exclude-internal") == 0
    assert "__consumer_offsets" not in capsys.readouterr().out.splitlines()


def test_partitions_are_added_and_never_taken_away(
    topics: Callable[..., int], capsys: Captured, unique: Unique
) -> None:
    name = unique("grows")
    assert topics("--create", "--topic", name, "--partitions", "1") == 0
    assert topics("--alter", "--topic", name, "--partitions", "4") == 0
    capsys.readouterr()
    assert len(describe(topics, capsys, "--topic", name, "--partition-size-limit-per-response", "3")) == 5
    assert topics("--alter", "--topic", name, "--partitions", "2") == 1
    assert "never taken away" in capsys.readouterr().err


def test_replica_assignment_places_each_partition(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    name = unique("placed")
    assert topics("--create", "--topic", name, "--replica-assignment", "1,1,1") == 0
    capsys.readouterr()
    assert len(describe(topics, capsys, "--topic", name)) == 4


def test_delete_by_pattern(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    prefix = unique("gone")
    for letter in "ab":
        assert topics("--create", "--topic", f"{prefix}-{letter}") == 0
    assert topics("--delete", "--topic", f"{prefix}-.*") == 0
    assert topics("--delete", "--topic", f"{prefix}-.*") == 1
    assert f"no topic `{prefix}-.*` exists" in capsys.readouterr().err
    assert topics("--delete", "--topic", f"{prefix}-.*", "--if-exists") == 0
    assert topics("--list", "--topic", f"{prefix}-.*") == 0
    assert capsys.readouterr().out == ""


@pytest.mark.one_broker("has too few replicas on one broker")
def test_filters_show_only_what_is_wrong(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    healthy, strict = unique("healthy"), unique("strict")
    assert topics("--create", "--topic", healthy, "--partitions", "2") == 0
    assert topics("--create", "--topic", strict, "--config", "min.insync.replicas=2") == 0
    capsys.readouterr()
    both = f"{healthy}|{strict}"
    assert describe(topics, capsys, "--topic", both, "--unavailable-partitions") == []
    assert describe(topics, capsys, "--topic", both, "--under-replicated-partitions") == []
    under = describe(topics, capsys, "--topic", both, "--under-min-isr-partitions")
    assert [line.split("\t")[1] for line in under] == [f"Topic: {strict}"]
    at = describe(topics, capsys, "--topic", both, "--at-min-isr-partitions")
    assert [line.split("\t")[1] for line in at] == [f"Topic: {healthy}"] * 2
    overridden = describe(topics, capsys, "--topic", both, "--topics-with-overrides")
    assert [line.split("\t")[0] for line in overridden] == [f"Topic: {strict}"]


@pytest.mark.one_broker("shows the number of replicas")
def test_json_for_scripts(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    name = unique("json")
    assert topics("--create", "--topic", name, "--partitions", "2", "--json") == 0
    created = json.loads(capsys.readouterr().out)
    assert created["created"] is True
    assert created["partitions"] == 2
    assert topics("--describe", "--topic", name, "--json") == 0
    [described] = json.loads(capsys.readouterr().out)
    assert described["topic_id"] == created["topic_id"]
    assert [partition["leader"] for partition in described["partitions"]] == [1, 1]
    assert topics("--list", "--topic", name, "--json") == 0
    assert [listed["topic"] for listed in json.loads(capsys.readouterr().out)] == [name]


@pytest.mark.one_broker("has too few replicas on one broker")
def test_too_many_replicas_are_explained(topics: Callable[..., int], capsys: Captured, unique: Unique) -> None:
    assert topics("--create", "--topic", unique("replicas"), "--replication-factor", "3") == 1
    assert "more replicas than brokers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--list", "--create"], "exactly one action"),
        (["--create"], "needs --topic"),
        (["--list", "--partitions", "3"], "--partitions goes with --create or --alter"),
        (["--alter", "--topic", "t"], "needs --partitions"),
        (["--alter", "--topic", "t", "--partitions", "2", "--config", "a=b"], "kafka-configs"),
        (["--create", "--topic", "t", "--replica-assignment", "1", "--partitions", "1"], "leave the numbers out"),
        (["--describe", "--topics-with-overrides", "--unavailable-partitions"], "leave out the options"),
        (["--list", "--nonsense"], "--nonsense"),
        (["--list", "--top", "x"], "--top"),  # no abbreviations, as in Kafka
    ],
)
def test_wrong_options_are_explained(arguments: list[str], words: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["topics", *arguments])
    assert stopped.value.code == 1
    assert words in capsys.readouterr().err


def test_called_with_nothing_it_explains_itself(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["topics"])
    assert stopped.value.code == 0
    assert "ottla topics --create --topic news --partitions 3" in capsys.readouterr().out


def test_no_broker_is_said_with_what_to_do(capsys: Captured) -> None:
    assert main(["topics", "--list", "--bootstrap-server", "127.0.0.1:1"]) == 1
    error = capsys.readouterr().err
    assert "no broker answers at 127.0.0.1:1" in error
    assert "ottla up" in error


def test_assignment_is_checked_before_it_is_sent() -> None:
    assert parse_assignment("1:2,2:3") == [[1, 2], [2, 3]]
    for text, words in {"1:1": "twice", "1:2,3": "must be equal", "a": "wants"}.items():
        with pytest.raises(CommandError, match=words):
            parse_assignment(text)


def test_patterns_match_whole_names_with_commas_for_or() -> None:
    pattern = TopicPattern(" 'news, mail.*' ")
    assert [name for name in ("news", "newsroom", "mail", "mail.in") if pattern.matches(name)] == [
        "news",
        "mail",
        "mail.in",
    ]
    with pytest.raises(CommandError, match="not a regular expression"):
        TopicPattern("(")
