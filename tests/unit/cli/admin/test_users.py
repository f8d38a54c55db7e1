"""`ottla users` and `kafka-storage --add-scram` without a broker, and where passwords come from."""

import io
import json
import stat
from pathlib import Path

import pytest

from ottla.broker.security.sasl.scram_credentials import MECHANISMS, credential_of, read_credential, salted_password
from ottla.cli.admin import users
from ottla.cli.common import scram
from ottla.cli.common.output import CommandError
from ottla.cli.common.passwords import password_from
from ottla.cli.local import storage
from ottla.cluster.documents import entity_config_path
from ottla.cluster.embedded import FILE_NAME, read_documents
from ottla.cluster.image import user_entity

SECRET = "very=secret, and ü"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(f"log.dirs={tmp_path / 'data'}\n")
    return path


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", SECRET)


def run(config: Path, *arguments: str) -> int:
    return users.main(["--offline", str(config), *arguments])


def knows(config: Path, user: str, mechanism: str, password: str) -> bool:
    """Whether the credential that was written fits this password."""
    documents = read_documents(config.parent / "data" / FILE_NAME)
    text = json.loads(documents[entity_config_path(user_entity(user))])["config"][mechanism]
    kept = read_credential(text)
    salted = salted_password(MECHANISMS[mechanism], password, kept.salt, kept.iterations)
    return credential_of(MECHANISMS[mechanism], salted, kept.salt, kept.iterations) == kept


def test_a_user_comes_gets_another_password_and_goes(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(config, "add", "alice", "--password-from", "env:SECRET") == 0
    assert capsys.readouterr().out == "Added user alice for SCRAM-SHA-256, SCRAM-SHA-512.\n"
    assert all(knows(config, "alice", mechanism, SECRET) for mechanism in MECHANISMS)
    run(config, "remove", "alice", "--mechanism", "SCRAM-SHA-256")
    new = config.parent / "new"
    run(config, "rotate", "alice", "--password-from", f"generate:{new}", "--iterations", "8192")
    generated = new.read_text().strip()
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert knows(config, "alice", "SCRAM-SHA-512", generated)
    capsys.readouterr()
    run(config, "--json", "list")
    said = capsys.readouterr().out
    assert json.loads(said) == [
        {"user": "alice", "mechanisms": [{"name": "SCRAM-SHA-512", "iterations": 8192}]},
    ]
    assert generated not in said
    run(config, "remove", "alice")
    capsys.readouterr()
    run(config, "list")
    assert capsys.readouterr().out == "No user has SCRAM credentials.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rotate", "bob", "--password-from", "env:SECRET"], "there is no user bob"),
        (["remove", "bob"], "there is no user bob"),
        (["add", "alice", "--password-from", "env:SECRET"], "has a password for SCRAM-SHA-256"),
        (["add", "bob", "--password-from", "env:NOWHERE"], "no environment variable NOWHERE"),
        (["add", "bob", "--password-from", "file:/nowhere/at/all"], "cannot read"),
        (["add", "bob", "--password-from", SECRET], "--password-from wants"),
        (["add", "bob", "--password-from", "env:SECRET", "--iterations", "12"], "from 4096 to 16384"),
        (["remove", "alice", "--mechanism", "SCRAM-SHA-512"], "no credential for SCRAM-SHA-512"),
    ],
)
def test_what_cannot_be_done_is_said_without_a_secret(config: Path, arguments: list[str], words: str) -> None:
    run(config, "add", "alice", "--mechanism", "SCRAM-SHA-256", "--password-from", "env:SECRET")
    with pytest.raises(CommandError, match=words) as failed:
        run(config, *arguments)
    assert SECRET not in str(failed.value)


def test_a_password_comes_from_a_file_a_pipe_or_a_person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    assert password_from(f"file:{path}", "a") == SECRET
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{SECRET}\nmore"))
    assert password_from(None, "a") == SECRET
    said = iter([SECRET, SECRET, SECRET, "other"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(said))
    assert password_from("prompt", "a") == SECRET
    with pytest.raises(CommandError, match="differ"):
        password_from("prompt", "a")
    path.write_text("\n")
    with pytest.raises(CommandError, match="is empty"):
        password_from(f"file:{path}", "a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[iterations=8192,password=x]", ("u", "SCRAM-SHA-256", "x", 8192)),
        ("[password=a,b=c]", ("u", "SCRAM-SHA-256", "a,b=c", 4096)),
        ('[password="x y",iterations=4096]', ("u", "SCRAM-SHA-256", "x y", 4096)),
    ],
)
def test_a_credential_on_a_command_line_of_kafka(text: str, expected: tuple[str, str, str, int]) -> None:
    assert scram.read_credential("SCRAM-SHA-256", text, "u") == expected


@pytest.mark.parametrize("text", ["[iterations=8192]", "[]", "[pass=hunter2]", "[password=hunter2,iterations=1]"])
def test_a_credential_that_does_not_read_so_is_not_repeated(text: str) -> None:
    with pytest.raises(CommandError) as failed:
        scram.read_credential("SCRAM-SHA-256", text, "u")
    assert "hunter2" not in str(failed.value)


def test_formatting_can_bring_the_first_user(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    storage.main(["random-uuid"])
    cluster = capsys.readouterr().out.strip()
    credential = "SCRAM-SHA-512=[name=admin,iterations=8192,password=first]"
    assert storage.main(["format", "-t", cluster, "-c", str(config), "-s", "--add-scram", credential]) == 0
    assert knows(config, "admin", "SCRAM-SHA-512", "first")
    assert "first" not in capsys.readouterr().out
