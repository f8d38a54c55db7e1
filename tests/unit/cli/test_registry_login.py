"""Who logs in to a schema registry: from a file or the environment, or in clear on the command line, with a warning."""

from pathlib import Path
from typing import Any, ClassVar

import pytest

from ottla.cli.admin import schema
from ottla.cli.common.output import CommandError
from ottla.cli.common.passwords import login_from
from ottla.cli.data import console_consumer, schema_consoles, schema_values

SHOWN = "everybody on this machine can read it"


def test_a_login_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "login"
    place.write_text("app:from a file: with a colon\n")
    monkeypatch.setenv("LOGIN", "app:from the environment")
    assert login_from(f"file:{place}", "--user") == ("app", "from a file: with a colon")
    assert login_from("env:LOGIN", "--user") == ("app", "from the environment")
    assert login_from("app:in clear", "--user") == ("app", "in clear")
    assert login_from("", "--user") == (None, "")


@pytest.mark.parametrize("text", ["file:/nowhere/at/all", "env:NO_SUCH_VARIABLE", "nobody"])
def test_what_is_no_login_is_named_without_its_contents(text: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--user"):
        login_from(text, "--user")
    place = tmp_path / "login"
    place.write_text("secret without a name")
    with pytest.raises(CommandError) as refused:
        login_from(f"file:{place}", "--user")
    assert "secret" not in str(refused.value)


class Seen:
    """Stands in for the registry's client."""

    logins: ClassVar[list[tuple[str | None, str]]] = []

    def __init__(self, *_: Any, user: str | None, password: str, **__: Any) -> None:
        self.logins.append((user, password))

    def __enter__(self) -> "Seen":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get(self, *_: object) -> list[str]:
        return []


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str]]:
    monkeypatch.setattr(Seen, "logins", [])
    monkeypatch.setattr(schema, "RegistryClient", Seen)
    monkeypatch.setattr(schema_values, "RegistryClient", Seen)
    return Seen.logins


def test_ottla_schema_warns_of_what_everybody_sees(
    seen: list[tuple[str | None, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOGIN", "app:hidden")
    assert schema.main(["--user", "env:LOGIN", "list"]) == 0
    assert capsys.readouterr().err == ""
    assert schema.main(["--user", "app:shown", "list"]) == 0
    told = capsys.readouterr().err
    assert SHOWN in told
    assert "shown" not in told
    monkeypatch.setenv("OTTLA_REGISTRY_USER", "app:of the environment")
    assert schema.main(["list"]) == 0
    assert capsys.readouterr().err == ""
    assert seen == [("app", "hidden"), ("app", "shown"), ("app", "of the environment")]


def test_console_tools_too(
    seen: list[tuple[str | None, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console_consumer, "main", lambda *_: 0)
    monkeypatch.setenv("LOGIN", "app:hidden")
    for said, warned in (("env:LOGIN", False), ("app:shown", True)):
        assert schema_consoles.consume(["--topic", "t", "--property", f"basic.auth.user.info={said}"], "x") == 0
        assert (SHOWN in capsys.readouterr().err) == warned
        schema_values.registry_of({"basic.auth.user.info": said})
    assert seen == [("app", "hidden"), ("app", "shown")]
