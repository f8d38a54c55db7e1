"""kafka-configs and ottla users against a real broker: credentials come, are shown without secrets, and go."""

from collections.abc import Iterator

import pytest
from tests.security.sasl_kit import Confluent, Denied, Login, sasl_broker

from ottla.cli.main import main
from ottla.testing import RunningBroker

pytestmark = pytest.mark.one_broker("names its listeners")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    with sasl_broker(tmp_path_factory.mktemp("issuer")) as (found, _):
        yield found


def test_kafka_configs_sets_shows_and_deletes_credentials(
    running: RunningBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    about = ["configs", "--bootstrap-server", running.bootstrap_of("PLAINTEXT"), "--entity-type", "users"]
    whose = [*about, "--entity-name", "alice"]
    assert main([*whose, "--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=by-tool]"]) == 0
    assert capsys.readouterr().out == "Completed updating config for user alice.\n"
    Confluent().exercise(Login(running.bootstrap_of("SASL"), "SCRAM-SHA-512", "by-tool"), "with-tool")
    assert main([*whose, "--alter", "--add-config", "producer_byte_rate=1000000"]) == 0
    capsys.readouterr()
    assert main([*about, "--describe"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Quota configs for user-principal 'alice' are producer_byte_rate=1000000.0",
        (
            "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=4096, "
            "SCRAM-SHA-512=iterations=8192"
        ),
    ]
    assert main([*whose, "--alter", "--delete-config", "SCRAM-SHA-512"]) == 0
    with pytest.raises(Denied):
        Confluent().exercise(Login(running.bootstrap_of("SASL"), "SCRAM-SHA-512", "by-tool"), "gone")
    capsys.readouterr()
    assert main([*whose, "--describe", "--json"]) == 0
    assert "producer_byte_rate" in capsys.readouterr().out, "quotas stay"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--entity-default", "--add-config", "SCRAM-SHA-256=[password=hunter2]"], "of one user"),
        (["--entity-name", "a", "--add-config", "SCRAM-SHA-256=[password=hunter2],producer_byte_rate=1"], "quotas"),
        (["--entity-name", "a", "--add-config", "SCRAM-SHA-256=[iterations=1,password=hunter2]"], "from 4096"),
        (["--entity-name", "a", "--add-config", "SCRAM-SHA-256=[password=hunter2"], "--add-config wants"),
        (["--entity-name", "nobody", "--delete-config", "SCRAM-SHA-256"], "does not exist"),
    ],
)
def test_what_cannot_be_done_is_said_without_the_password(
    running: RunningBroker, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    about = ["configs", "--bootstrap-server", running.bootstrap_of("PLAINTEXT"), "--alter", "--entity-type", "users"]
    assert main([*about, *arguments]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "hunter2" not in said


def test_users_are_listed_through_a_broker(
    running: RunningBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "carol-secret")
    about = ["users", "--bootstrap-server", running.bootstrap_of("PLAINTEXT")]
    assert main([*about, "add", "carol", "--password-from", "env:SECRET"]) == 0
    assert main([*about, "list"]) == 0
    assert "carol  SCRAM-SHA-256 (4096 iterations), SCRAM-SHA-512 (4096 iterations)" in capsys.readouterr().out
    assert main([*about, "remove", "carol"]) == 0
    assert main([*about, "list"]) == 0
    said = capsys.readouterr().out
    assert "carol  " not in said
    assert "carol-secret" not in said
