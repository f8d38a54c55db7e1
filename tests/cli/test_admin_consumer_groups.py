"""kafka-consumer-groups against a real broker, with members from a real client."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from ottla.cli.admin.consumer_group_reset import parse_plans
from ottla.cli.admin.consumer_group_scope import parse_topic_partitions
from ottla.cli.common.output import CommandError
from ottla.cli.main import main
from ottla.client.group_resets import CannotReset, parse_datetime, parse_duration
from ottla.model.names import TopicPartition
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]
Groups = Callable[..., int]

FIRST_MS = 1_700_000_000_000
RECORDS = 10


@pytest.fixture
def groups(ottla_broker: RunningBroker) -> Groups:
    return lambda *arguments: main(["consumer-groups", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Unique, capsys: Captured) -> str:
    """Two partitions with ten records each, a second apart."""
    name = unique("read")
    create = ["topics", "--bootstrap-server", ottla_broker.bootstrap, "--create", "--topic", name, "--partitions", "2"]
    assert main([*create, "--config", "retention.ms=-1"]) == 0
    capsys.readouterr()
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for number in range(RECORDS):
        for partition in (0, 1):
            producer.produce(name, b"x", partition=partition, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0
    return name


@contextmanager
def member(bootstrap: str, group: str, topic: str, **settings: str) -> Iterator[Consumer]:
    """A consumer that has read and committed everything."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest",
         "enable.auto.commit": False, "client.id": "reader", **settings}
    )  # fmt: skip
    consumer.subscribe([topic])
    seen = 0
    while seen < 2 * RECORDS:
        batch = consumer.consume(100, timeout=1.0)
        seen += sum(message.error() is None for message in batch)
    consumer.commit(asynchronous=False)
    try:
        yield consumer
    finally:
        consumer.close()


def offsets_of(groups: Groups, capsys: Captured, group: str) -> dict[int, int]:
    capsys.readouterr()
    assert groups("--describe", "--group", group, "--json") == 0
    [described] = json.loads(capsys.readouterr().out)
    return {row["partition"]: row["current_offset"] for row in described["offsets"]}


def reset(groups: Groups, capsys: Captured, group: str, *form: str) -> list[tuple[int, int]]:
    """What a reset says it does, as (partition, new offset)."""
    capsys.readouterr()
    assert groups("--reset-offsets", "--group", group, *form) == 0
    blank, titles, *rows = capsys.readouterr().out.splitlines()
    assert blank == ""
    assert titles.split() == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    return [(int(row.split()[2]), int(row.split()[3])) for row in rows]


@pytest.mark.one_broker("shows the address of its coordinator")
def test_a_group_at_work(
    groups: Groups, topic: str, unique: Unique, capsys: Captured, ottla_broker: RunningBroker
) -> None:
    group = unique("working")
    with member(ottla_broker.bootstrap, group, topic, **{"group.instance.id": "static-1"}):
        assert groups("--describe", "--group", group) == 0
        blank, titles, *rows = capsys.readouterr().out.splitlines()
        assert blank == ""
        assert titles.split()[:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
        assert titles.split()[6:] == ["CONSUMER-ID", "HOST", "CLIENT-ID"]
        assert [row.split()[:6] for row in rows] == [[group, topic, str(n), "10", "10", "0"] for n in (0, 1)]
        assert {tuple(row.split()[7:]) for row in rows} == {("/127.0.0.1", "reader")}

        assert groups("--describe", "--group", group, "--members", "--verbose") == 0
        _, titles, row = capsys.readouterr().out.splitlines()
        assert titles.split()[2] == "GROUP-INSTANCE-ID"
        assert row.split()[2:6] == ["static-1", "/127.0.0.1", "reader", "2"]
        assert f"{topic}:0,1" in row

        assert groups("--describe", "--group", group, "--state") == 0
        _, titles, row = capsys.readouterr().out.splitlines()
        assert titles.split() == ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
        assert row.split() == [group, ottla_broker.bootstrap, "(1)", "range", "Stable", "1"]

        assert groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute") == 1
        assert f"if the group '{group}' is inactive, but the current state is Stable" in capsys.readouterr().err
        assert groups("--delete", "--group", group) == 1
        assert "stop its consumers first" in capsys.readouterr().out
        assert groups("--delete-offsets", "--group", group, "--topic", topic) == 1
        assert "stop them first" in capsys.readouterr().out
    assert offsets_of(groups, capsys, group) == {0: 10, 1: 10}


def test_a_group_that_nobody_is_in(groups: Groups, topic: str, unique: Unique, capsys: Captured) -> None:
    group = unique("idle")
    assert reset(groups, capsys, group, "--topic", f"{topic}:1", "--to-offset", "4", "--execute") == [(1, 4)]
    assert groups("--describe", "--group", group) == 0
    shown = capsys.readouterr()
    assert f"Consumer group '{group}' has no active members." in shown.err
    assert shown.out.splitlines()[2].split() == [group, topic, "1", "4", "10", "6", "-", "-", "-"]
    assert groups("--list", "--state", "empty", "--type", "classic") == 0
    listed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert listed[0] == ["GROUP", "TYPE", "STATE"]
    assert [group, "Classic", "Empty"] in listed
    assert groups("--list", "--state", "stable") == 0
    assert group not in capsys.readouterr().out
    assert groups("--list") == 0
    assert group in capsys.readouterr().out.splitlines()


def test_every_form_of_reset(groups: Groups, topic: str, unique: Unique, capsys: Captured) -> None:
    group = unique("reset")
    scope = ["--topic", topic, "--execute"]
    assert reset(groups, capsys, group, *scope, "--to-latest") == [(0, 10), (1, 10)]
    assert reset(groups, capsys, group, *scope, "--shift-by", "-3") == [(0, 7), (1, 7)]
    assert reset(groups, capsys, group, *scope, "--shift-by=1") == [(0, 8), (1, 8)]
    assert reset(groups, capsys, group, *scope, "--shift-by", "-100") == [(0, 0), (1, 0)]
    assert reset(groups, capsys, group, *scope, "--to-offset", "5000") == [(0, 10), (1, 10)]
    assert reset(groups, capsys, group, *scope, "--to-earliest") == [(0, 0), (1, 0)]
    # Three seconds after the first record, on the second, and then a moment later.
    assert reset(groups, capsys, group, *scope, "--to-datetime", "2023-11-14T22:13:23.000") == [(0, 3), (1, 3)]
    assert reset(groups, capsys, group, *scope, "--to-datetime", "2023-11-14T23:13:23.001+01:00") == [(0, 4), (1, 4)]
    assert reset(groups, capsys, group, *scope, "--by-duration", "P36500D") == [(0, 0), (1, 0)]
    assert reset(groups, capsys, group, *scope, "--by-duration", "PT0S") == [(0, 10), (1, 10)]
    assert offsets_of(groups, capsys, group) == {0: 10, 1: 10}
    only_one = ["--topic", f"{topic}:0", "--execute", "--to-offset", "2"]
    assert reset(groups, capsys, group, *only_one) == [(0, 2)]
    assert reset(groups, capsys, group, "--all-topics", "--execute", "--to-current") == [(0, 2), (1, 10)]


def test_nothing_moves_without_execute(groups: Groups, topic: str, unique: Unique, capsys: Captured) -> None:
    group = unique("dry")
    reset(groups, capsys, group, "--topic", topic, "--to-latest", "--execute")
    assert groups("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest") == 0
    assert "without --execute" in capsys.readouterr().err
    assert reset(groups, capsys, group, "--topic", topic, "--to-earliest", "--dry-run") == [(0, 0), (1, 0)]
    assert offsets_of(groups, capsys, group) == {0: 10, 1: 10}


def test_a_plan_is_exported_edited_and_applied(
    groups: Groups, topic: str, unique: Unique, capsys: Captured, tmp_path: Path
) -> None:
    group, other = unique("plan"), unique("plan-other")
    for name in (group, other):
        reset(groups, capsys, name, "--topic", topic, "--to-offset", "6", "--execute")
    assert groups("--reset-offsets", "--group", group, "--topic", topic, "--to-current", "--export", "--dry-run") == 0
    exported = capsys.readouterr().out
    assert exported == f"{topic},0,6\n{topic},1,6\n\n"
    plan = tmp_path / "plan.csv"
    plan.write_text(exported.replace(",1,6", ",1,9"))
    assert reset(groups, capsys, group, "--from-file", str(plan), "--execute") == [(0, 6), (1, 9)]
    two = ["--group", group, "--group", other]
    assert groups("--reset-offsets", *two, "--all-topics", "--to-current", "--export", "--dry-run") == 0
    lines = capsys.readouterr().out.split()
    assert lines == [f"{group},{topic},0,6", f"{group},{topic},1,9", f"{other},{topic},0,6", f"{other},{topic},1,6"]
    plan.write_text("\n".join(line[:-1] + "1" for line in lines))
    assert groups("--reset-offsets", *two, "--from-file", str(plan), "--execute") == 0
    assert offsets_of(groups, capsys, group) == offsets_of(groups, capsys, other) == {0: 1, 1: 1}


def test_offsets_and_groups_are_deleted(groups: Groups, topic: str, unique: Unique, capsys: Captured) -> None:
    group = unique("deleted")
    reset(groups, capsys, group, "--topic", topic, "--to-latest", "--execute")
    assert groups("--delete-offsets", "--group", group, "--topic", f"{topic}:1") == 0
    first, blank, titles, row = capsys.readouterr().out.splitlines()
    assert first == f"Request succeeded for deleting offsets from group {group}."
    assert (blank, titles.split(), row.split()) == ("", ["TOPIC", "PARTITION", "STATUS"], [topic, "1", "Successful"])
    assert offsets_of(groups, capsys, group) == {0: 10}
    assert groups("--delete", "--group", group) == 0
    assert capsys.readouterr().out == f"Deletion of requested consumer groups ('{group}') was successful.\n"
    assert groups("--delete", "--group", group) == 1
    assert f"* Group '{group}' could not be deleted due to: " in capsys.readouterr().out
    assert groups("--describe", "--group", group) == 1
    assert f"Consumer group '{group}' does not exist." in capsys.readouterr().err


def test_a_reset_that_cannot_be_planned_changes_nothing(
    groups: Groups, topic: str, unique: Unique, capsys: Captured
) -> None:
    group = unique("unplanned")
    for form, words in {
        ("--topic", topic, "--shift-by", "1"): "no offset there to shift from",
        ("--topic", "absent-topic", "--to-earliest"): "there is no topic `absent-topic`",
        ("--topic", f"{topic}:7", "--to-earliest"): "no such topic or partition",
        ("--topic", topic, "--to-datetime", "yesterday"): "--to-datetime wants",
    }.items():
        assert groups("--reset-offsets", "--group", group, *form, "--execute") == 1
        assert words in capsys.readouterr().err
    assert groups("--describe", "--group", group) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--list", "--describe"], "exactly one action"),
        (["--describe"], "needs --group GROUP or --all-groups"),
        (["--describe", "--group", "g", "--all-groups"], "not both"),
        (["--describe", "--group", "g", "--members", "--state"], "one of --members"),
        (["--list", "--group", "g"], "--list takes neither"),
        (["--reset-offsets", "--group", "g", "--topic", "t"], "exactly one of --to-earliest"),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--to-latest"], "exactly one of"),
        (["--reset-offsets", "--group", "g", "--to-earliest"], "say which topics"),
        (["--reset-offsets", "--group", "g", "--topic", "t", "--to-latest", "--dry-run", "--execute"], "not both"),
        (["--describe", "--group", "g", "--execute"], "--execute goes with --reset-offsets"),
        (["--delete-offsets", "--group", "g"], "--topic TOPIC"),
    ],
)
def test_wrong_options_are_explained(arguments: list[str], words: str, capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["consumer-groups", *arguments])
    assert stopped.value.code == 1
    assert words in capsys.readouterr().err


def test_times_and_durations() -> None:
    assert parse_datetime("1970-01-01T00:00:01.500") == 1500
    assert parse_datetime("1970-01-01T01:00:00.000+01:00") == 0
    assert parse_datetime("1970-01-01T00:00:01Z") == 1000
    assert parse_duration("P1DT2H3M4.005S") == ((24 + 2) * 3600 + 3 * 60 + 4) * 1000 + 5
    assert parse_duration("PT-1M") == -60_000
    assert parse_duration("-pt1s") == -1000
    for text in ("1970-01-01", "T", "2023-13-01T00:00:00"):
        with pytest.raises(CannotReset, match="--to-datetime"):
            parse_datetime(text)
    for text in ("P", "PT", "1H", "P1H", "PT1D", ""):
        with pytest.raises(CannotReset, match="--by-duration"):
            parse_duration(text)


def test_plans_in_files() -> None:
    assert parse_plans("t,0,5\n\nt,1,6\n", ["g"]) == {"g": {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6}}
    assert parse_plans('g,"a,b",0,5\n', []) == {"g": {TopicPartition("a,b", 0): 5}}
    for text in ("t,0\n", "t,zero,5\n", "t,0,5\n"):
        with pytest.raises(CommandError, match="line 1"):
            parse_plans(text, [])


def test_partitions_of_a_topic() -> None:
    assert parse_topic_partitions("t:0,2") == [TopicPartition("t", 0), TopicPartition("t", 2)]
    for text in ("t:", ":1", "t:a", "t:-1", "t:1:2"):
        with pytest.raises(CommandError, match="topic:0,1,2"):
            parse_topic_partitions(text)
