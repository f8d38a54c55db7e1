"""kafka-acls against a real broker, in its own lists and in its words."""

import json
from collections.abc import Callable, Iterator

import pytest

from ottla.cli.main import main
from ottla.testing import RunningBroker, broker
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import zookeeper

Acls = Callable[..., str]
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningBroker]:
    """Everybody is anonymous here, and a super user."""
    with broker({"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}) as running:
        yield running


@pytest.fixture
def acls(guarded: RunningBroker, capsys: pytest.CaptureFixture[str]) -> Iterator[Acls]:
    """Runs the tool and returns what it printed. There are no rules in the end."""

    def run(*arguments: str) -> str:
        assert main(["acls", "--bootstrap-server", guarded.bootstrap, *arguments]) == 0
        return capsys.readouterr().out

    yield run
    for option in ("--topic", "--group", "--transactional-id"):
        run("--remove", "--force", option, "*", "--resource-pattern-type", "any")
        for rule in json.loads(run("--list", "--json")):
            if rule["resourceType"].replace("_", "-").lower() == option[2:]:
                run("--remove", "--force", option, rule["name"], "--resource-pattern-type", "any")
    run("--remove", "--force", "--cluster")
    assert run("--list") == ""


def rules(acls: Acls, *arguments: str) -> set[tuple[str, ...]]:
    """Resource, name, pattern, principal, operation, permission; the host where it is not *."""
    return {
        (*(rule[key] for key in ("resourceType", "name", "patternType", "principal", "operation", "permissionType")),
         *([rule["host"]] if rule["host"] != "*" else []))
        for rule in json.loads(acls("--list", "--json", *arguments))
    }  # fmt: skip


def test_rules_are_printed_as_by_kafka(acls: Acls) -> None:
    resource = "`ResourcePattern(resourceType=TOPIC, name=news, patternType=LITERAL)`"
    rule = "(principal=User:alice, host=10.0.0.7, operation=READ, permissionType=ALLOW)"
    added = acls("--add", "--allow-principal", "User:alice", "--allow-host", "10.0.0.7", "--operation", "Read",
                 "--topic", "news")  # fmt: skip
    assert added == f"Adding ACLs for resource {resource}: \n \t{rule} \n\n"
    assert acls("--list") == f"Current ACLs for resource {resource}: \n \t{rule} \n\n"
    assert acls("--list", "--principal", "User:alice", "--topic", "news") == (
        f"ACLs for principal `User:alice`\nCurrent ACLs for resource {resource}: \n \t{rule} \n\n"
    )
    assert acls("--list", "--principal", "User:bob") == "ACLs for principal `User:bob`\n"
    assert acls("--list", "--topic", "olds") == ""


def test_the_rights_of_producers_and_consumers_for_short(acls: Acls) -> None:
    alice = ["--add", "--allow-principal", "User:alice"]
    acls(*alice, "--producer", "--idempotent", "--topic", "news", "--transactional-id", "x")
    assert rules(acls) == {
        *(("TOPIC", "news", "LITERAL", "User:alice", each, "ALLOW") for each in ("WRITE", "DESCRIBE", "CREATE")),
        *(("TRANSACTIONAL_ID", "x", "LITERAL", "User:alice", each, "ALLOW") for each in ("WRITE", "DESCRIBE")),
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "IDEMPOTENT_WRITE", "ALLOW"),
    }
    acls("--add", "--allow-principal", "User:bob", "--consumer", "--topic", "news", "--group", "*")
    assert rules(acls, "--group", "*") == {("GROUP", "*", "LITERAL", "User:bob", "READ", "ALLOW")}
    assert {rule[4] for rule in rules(acls, "--topic", "news") if rule[3] == "User:bob"} == {"READ", "DESCRIBE"}
    acls("--remove", "--force", "--allow-principal", "User:alice", "--producer", "--topic", "news")
    assert {rule[3] for rule in rules(acls, "--topic", "news")} == {"User:bob"}


def test_prefixes_denials_and_hosts(acls: Acls) -> None:
    acls("--add", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--deny-host", "10.0.0.2",
         "--topic", "app.", "--resource-pattern-type", "prefixed")  # fmt: skip
    acls("--add", "--allow-principal", "User:a", "--allow-principal", "User:b", "--operation", "AlterConfigs",
         "--topic", "app.one", "--group", "app.one")  # fmt: skip
    denied = {("TOPIC", "app.", "PREFIXED", "User:*", "ALL", "DENY", host) for host in ("10.0.0.1", "10.0.0.2")}
    assert rules(acls, "--topic", "app.one", "--resource-pattern-type", "match") == denied | {
        ("TOPIC", "app.one", "LITERAL", f"User:{name}", "ALTER_CONFIGS", "ALLOW") for name in "ab"
    }
    acls("--remove", "--force", "--deny-principal", "User:*", "--deny-host", "10.0.0.1", "--topic", "app.",
         "--resource-pattern-type", "prefixed")  # fmt: skip
    assert len(rules(acls)) == 5


def test_removal_asks_first(
    acls: Acls, monkeypatch: pytest.MonkeyPatch, guarded: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    acls("--add", "--allow-principal", "User:a", "--topic", "news")
    asked: list[str] = []
    answers = iter(["n", "Y"])

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    monkeypatch.setattr("builtins.input", answer)
    acls("--remove", "--topic", "news")
    assert len(rules(acls)) == 1
    acls("--remove", "--topic", "news")
    assert rules(acls) == set()
    assert "Are you sure you want to delete all ACLs for resource filter" in asked[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--topic", "t"], "exactly one action"),
        (["--list", "--add", "--topic", "t"], "exactly one action"),
        (["--add", "--allow-principal", "User:a"], "at least one resource"),
        (["--add", "--topic", "t"], "--allow-principal, --deny-principal"),
        (["--add", "--allow-principal", "alice", "--topic", "t"], "User:alice"),
        (["--add", "--allow-principal", "User:a", "--producer"], "--producer you must specify a --topic"),
        (["--add", "--allow-principal", "User:a", "--consumer", "--topic", "t"], "a --topic and a --group"),
        (["--add", "--allow-principal", "User:a", "--idempotent", "--topic", "t"], "only available if --producer"),
        (
            ["--add", "--allow-principal", "User:a", "--producer", "--operation", "Read", "--topic", "t"],
            "can't be used",
        ),
        (["--add", "--allow-principal", "User:a", "--operation", "Write", "--group", "g"], "only supports operations"),
        (["--add", "--allow-principal", "User:a", "--operation", "Fly", "--topic", "t"], "no operation Fly"),
        (
            ["--add", "--allow-principal", "User:a", "--topic", "t", "--resource-pattern-type", "match"],
            "not valid when",
        ),
        (["--remove", "--principal", "User:a", "--topic", "t"], "only available if --list"),
    ],
)
def test_what_does_not_go_together_is_said(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["acls", *arguments])
    assert words in capsys.readouterr().err


def test_brokers_without_an_authorizer_are_told_apart(
    ottla_broker: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["acls", "--bootstrap-server", ottla_broker.bootstrap, "--list"]) == 1
    assert "start them with authorizer.class.name=" in capsys.readouterr().err


def test_the_old_form_changes_the_lists_in_zookeeper_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """As books have it; and a broker that runs there hears of it at once."""
    with zookeeper() as ensemble:
        old = ["acls", "--authorizer-properties", f"zookeeper.connect={ensemble.connect}"]
        add = ["--add", "--allow-principal", "User:Bob", "--operation", "Read", "--topic", "Test-topic"]
        assert main([*old, "--authorizer", "kafka.security.authorizer.AclAuthorizer", *add]) == 0
        assert (
            main([*old, "--add", "--deny-principal", "User:*", "--group", "g", "--resource-pattern-type", "prefixed"])
            == 0
        )
        capsys.readouterr()
        assert main([*old, "--list", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert [(rule["name"], rule["patternType"], rule["principal"]) for rule in listed] == [
            ("Test-topic", "LITERAL", "User:Bob"), ("g", "PREFIXED", "User:*"),
        ]  # fmt: skip
        settings = {
            "zookeeper.connect": ensemble.connect,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        with broker(settings) as running:

            def seen() -> int:
                assert main(["acls", "--bootstrap-server", running.bootstrap, "--list", "--json"]) == 0
                return len(json.loads(capsys.readouterr().out))

            assert seen() == 2
            assert main([*old, "--remove", "--force", "--topic", "Test-topic"]) == 0
            capsys.readouterr()
            wait_until(lambda: seen() == 1, "the broker hears of it", seconds=20)


def test_the_old_form_without_a_zookeeper(capsys: pytest.CaptureFixture[str]) -> None:
    for properties, words in (("zookeeper.connect=127.0.0.1:1", "127.0.0.1:1"), ("a=b", "names the ZooKeeper")):
        assert main(["acls", "--authorizer-properties", properties, "--list"]) == 1
        assert words in capsys.readouterr().err
