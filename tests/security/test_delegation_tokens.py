"""Delegation tokens against a real broker: made by who has logged in, used to log in, renewed, and gone."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.security.sasl_kit import PASSWORD, USER, sasl_broker

from ottla.cli.main import main
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.one_broker("names its listeners")

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class Tool:
    """kafka-delegation-tokens as somebody."""

    def __init__(self, running: RunningBroker, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.running = running
        self.folder = folder
        self.capsys = capsys

    def config(
        self, name: str, password: str, *more: str, module: str = MODULE, mechanism: str = "SCRAM-SHA-256"
    ) -> str:
        path = self.folder / f"{len(list(self.folder.iterdir()))}.properties"
        words = " ".join((f'username="{name}"', f'password="{password}"', *more))
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={module} {words};\n"
        )
        return str(path)

    def run(self, config: str, *arguments: str, listener: str = "SASL", fails: str = "") -> list[dict[str, object]]:
        address = ["--bootstrap-server", self.running.bootstrap_of(listener), "--command-config", config, "--json"]
        code = main(["delegation-tokens", *address, *arguments])
        said = self.capsys.readouterr()
        if fails:
            assert code == 1
            assert fails.replace("_", " ").lower() in said.err
            return []
        assert code == 0, said.err
        found = json.loads(said.out)
        return found if isinstance(found, list) else [found]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {"delegation.token.secret.key": "shared-by-brokers", "delegation.token.expiry.check.interval.ms": "200"}
    with sasl_broker(tmp_path_factory.mktemp("issuer"), **settings) as (found, _):
        yield found


@pytest.fixture
def tool(running: RunningBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(running, tmp_path, capsys)


@pytest.fixture
def alice(tool: Tool) -> str:
    return tool.config(USER, PASSWORD)


@pytest.fixture
def bob(tool: Tool) -> str:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return tool.config("bob", "bob-secret", module=plain, mechanism="PLAIN")


def topics(tool: Tool, config: str) -> int:
    return main(
        ["topics", "--bootstrap-server", tool.running.bootstrap_of("SASL"), "--command-config", config, "--list"]
    )


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_is_made_used_renewed_and_deleted(tool: Tool, alice: str, bob: str, mechanism: str) -> None:
    (made,) = tool.run(alice, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob")
    assert (made["owner"], made["requester"], made["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    shown = str(made["hmac"])
    assert len(base64.b64decode(shown)) == 64
    with_token = tool.config(str(made["token_id"]), shown, 'tokenauth="true"', mechanism=mechanism)
    assert topics(tool, with_token) == 0
    assert topics(tool, tool.config(str(made["token_id"]), shown, mechanism=mechanism)) == 1, "it is no user"
    wrong = base64.b64encode(b"x" * 64).decode()
    assert topics(tool, tool.config(str(made["token_id"]), wrong, 'tokenauth="true"', mechanism=mechanism)) == 1
    tool.capsys.readouterr()
    tool.run(with_token, "--create", "--max-life-time-period", "-1", fails="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED")
    (renewed,) = tool.run(bob, "--renew", "--renew-time-period", "3600000", "--hmac", shown)
    assert renewed["expiry_timestamp_ms"] != made["expiry_timestamp_ms"]
    (known,) = [each for each in tool.run(alice, "--describe") if each["token_id"] == made["token_id"]]
    assert known["expiry_timestamp_ms"] == renewed["expiry_timestamp_ms"]
    tool.run(alice, "--expire", "--expiry-time-period", "-1", "--hmac", shown)
    assert topics(tool, with_token) == 1
    tool.capsys.readouterr()
    tool.run(alice, "--renew", "--renew-time-period", "1", "--hmac", shown, fails="DELEGATION_TOKEN_NOT_FOUND")


def test_others_neither_see_nor_touch_a_token(tool: Tool, alice: str, bob: str) -> None:
    (made,) = tool.run(alice, "--create", "--max-life-time-period", "60000")
    assert int(str(made["max_timestamp_ms"])) - int(str(made["issue_timestamp_ms"])) == 60_000
    assert made["token_id"] not in [each["token_id"] for each in tool.run(bob, "--describe")]
    for action in (["--renew", "--renew-time-period", "1"], ["--expire", "--expiry-time-period", "-1"]):
        tool.run(bob, *action, "--hmac", str(made["hmac"]), fails="DELEGATION_TOKEN_OWNER_MISMATCH")


def test_an_expired_token_is_of_no_use_and_goes_away(tool: Tool, alice: str) -> None:
    (made,) = tool.run(alice, "--create", "--max-life-time-period", "1")
    with_token = tool.config(str(made["token_id"]), str(made["hmac"]), 'tokenauth="true"')
    assert topics(tool, with_token) == 1
    tool.capsys.readouterr()
    wait_until(
        lambda: made["token_id"] not in [each["token_id"] for each in tool.run(alice, "--describe")],
        "the end of the expired token",
    )


def test_renewers_are_users_and_who_is_not_known_gets_no_token(tool: Tool, alice: str) -> None:
    tool.run(
        alice,
        "--create",
        "--max-life-time-period",
        "1",
        "--renewer-principal",
        "Group:x",
        fails="INVALID_PRINCIPAL_TYPE",
    )
    nobody = tool.folder / "nobody.properties"
    nobody.write_text("security.protocol=PLAINTEXT\n")
    tool.run(
        str(nobody),
        "--create", "--max-life-time-period", "1",
        listener="PLAINTEXT",
        fails="DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    )  # fmt: skip


def test_the_secrets_are_in_no_log(tool: Tool, alice: str) -> None:
    (made,) = tool.run(alice, "--create", "--max-life-time-period", "-1")
    assert str(made["hmac"]) not in tool.running.log_text()
    assert "shared-by-brokers" not in tool.running.log_text()


def rule(tool: Tool, *arguments: str) -> None:
    """Through the open listener, as a super user."""
    assert main(["acls", "--bootstrap-server", tool.running.bootstrap_of("PLAINTEXT"), "--force", *arguments]) == 0
    tool.capsys.readouterr()


@pytest.fixture
def guarded(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Tool]:
    """Where rights are looked at."""
    settings = {
        "delegation.token.secret.key": "shared-by-brokers",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with sasl_broker(tmp_path_factory.mktemp("issuer"), **settings) as (found, _):
        yield Tool(found, tmp_path, capsys)


def test_a_token_for_somebody_else_needs_a_right_on_that_user_and_so_does_seeing_one(guarded: Tool) -> None:
    alice = guarded.config(USER, PASSWORD)
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    bob = guarded.config("bob", "bob-secret", module=plain, mechanism="PLAIN")
    for_alice = ["--create", "--max-life-time-period", "-1", "--owner-principal", "User:alice"]
    guarded.run(bob, *for_alice, fails="DELEGATION_TOKEN_AUTHORIZATION_FAILED")

    on_alice = ["--add", "--allow-principal", "User:bob", "--user-principal", "User:alice"]
    rule(guarded, *on_alice, "--operation", "CreateTokens")
    (made,) = guarded.run(bob, *for_alice)
    assert (made["owner"], made["requester"]) == ("User:alice", "User:bob")
    carol = ["--create", "--max-life-time-period", "-1", "--owner-principal", "User:carol"]
    guarded.run(bob, *carol, fails="DELEGATION_TOKEN_AUTHORIZATION_FAILED")

    # It is alice's, who logs in with it and sees it; who asked for it sees it, too.
    with_token = guarded.config(str(made["token_id"]), str(made["hmac"]), 'tokenauth="true"')
    assert topics(guarded, with_token) == 0
    guarded.capsys.readouterr()

    def seen(who: str) -> list[object]:
        return [each["token_id"] for each in guarded.run(who, "--describe")]

    assert seen(alice) == seen(bob) == [made["token_id"]]
    (own,) = guarded.run(bob, "--create", "--max-life-time-period", "-1")
    assert seen(alice) == [made["token_id"]], "nothing of bob's"
    on_bob = ["--allow-principal", "User:alice", "--user-principal", "User:bob", "--operation", "DescribeTokens"]
    rule(guarded, "--add", *on_bob)
    assert set(seen(alice)) == {made["token_id"], own["token_id"]}
    rule(guarded, "--remove", *on_bob)
    assert seen(alice) == [made["token_id"]]
    by_id = ["--delegation-token", str(own["token_id"]), "--operation", "Describe"]
    rule(guarded, "--add", "--allow-principal", "User:alice", *by_id)
    assert set(seen(alice)) == {made["token_id"], own["token_id"]}
