"""Secrets are filled in late and hidden again."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.samples import checked, small

from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.plan import describe, make_plan, tree_lines
from ottla.pipelines.secrets import MissingSecret, Secrets, references

POSTGRES = {"postgres": "postgresql://me:${env:PASSWORD}@127.0.0.1/db", "table": "t"}


def test_values_come_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    secrets = Secrets(tmp_path, {"NAME": "from-env"})
    filled = secrets.fill_in({"a": "x ${env:NAME} y", "b": ["${file:key}", 3], "c": {"d": None}})
    assert filled == {"a": "x from-env y", "b": ["from-a-file", 3], "c": {"d": None}}
    assert secrets.hide("it was from-env, then from-a-file") == "it was ${env:NAME}, then ${file:key}"


def test_what_is_missing_is_named_without_any_value(tmp_path: Path) -> None:
    secrets = Secrets(tmp_path, {})
    with pytest.raises(MissingSecret, match="export NOPE=") as raised:
        secrets.fill_in("${env:NOPE}")
    assert "NOPE" in str(raised.value)
    with pytest.raises(MissingSecret, match="cannot be read"):
        secrets.fill_in("${file:nope}")


@given(st.text(min_size=3), st.text(), st.text())
def test_a_hidden_text_never_holds_the_secret(value: str, before: str, after: str) -> None:
    secrets = Secrets(Path(), {"N": value})
    reference = "${env:N}"
    assert secrets.fill_in(reference) == value
    hidden = secrets.hide(before + value + after)
    assert reference in hidden
    if value not in reference and not any(value[:size] in reference for size in range(1, len(value))):
        assert value not in hidden.replace(reference, "") or value in before + after


def test_a_plan_shows_references_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", "s3cret!")
    plan = make_plan(checked(small(client={"sasl.password": "${env:PASSWORD}"}, sinks=[POSTGRES])))
    shown = str(describe(plan)) + "".join(text for _, text in tree_lines(plan))
    assert "${env:PASSWORD}" in shown
    assert "s3cret!" not in shown


LITERAL = "postgresql://me:pw-of-mine@127.0.0.1/db"


def test_a_plan_shows_no_password_that_stands_in_the_file_itself() -> None:
    sources = {
        "orders": {"postgres": LITERAL, "table": "t", "increasing": "id", "password": "pw-of-mine"},
        "objects": {"s3": "s3://b/x", **dict.fromkeys(("access_key", "secret_key", "session_token"), "pw-of-mine")},
    }
    sinks = [
        {"postgres": "postgresql://h/db?user=me&password=pw-of-mine&connect_timeout=1", "table": "t"},
        {"postgres": "host=h password='pw-of-mine' user=me", "table": "t", "user": "me"},
    ]
    steps = [{"sql": "SELECT * FROM orders, objects"}]
    plan = make_plan(checked(small(sources=sources, steps=steps, sinks=sinks, tests=[])))
    shown = str(describe(plan)) + "".join(text for _, text in tree_lines(plan))
    assert "pw-of-mine" not in shown
    assert "postgresql://me:***@127.0.0.1/db" in shown
    assert "connect_timeout=1" in shown
    assert "user=me" in shown


def test_what_stands_in_the_file_itself_is_hidden_in_every_text() -> None:
    secrets = Secrets(Path(), {"N": "p%40ss/word"})
    secrets.learn({"postgres": LITERAL, "password": "letmein", "table": "orders"})
    secrets.learn({"sasl.jaas.config": 'Login required username="u" password="jaaspw";', "client.id": "c"})
    assert secrets.hide("me, pw-of-mine, letmein, jaaspw, orders") == "me, ***, ***, ***, orders"
    assert secrets.hide("at postgresql://you:other@h/db: refused") == "at postgresql://you:***@h/db: refused"
    secrets.fill_in("postgresql://me:${env:N}@h")
    assert secrets.hide("p%40ss/word is p@ss/word") == "${env:N} is ${env:N}"
    # A password that is said elsewhere anyway is hidden in URLs, and leaves other words alone.
    secrets.learn({"postgres": "postgresql://postgres:postgres@h/db"})
    assert secrets.hide("postgresql://postgres:postgres@h/db") == "postgresql://postgres:***@h/db"


@pytest.mark.parametrize(
    "url", ["postgresql//me:pw-of-mine@h/db", "me:pw-of-mine@h/db", "postgresql://me:pw-of-mine@[h/d"]
)
def test_a_url_that_cannot_be_read_is_not_quoted_with_its_password(url: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        checked(small(sinks=[{"postgres": url, "table": "t"}]))
    assert "write postgresql://host:5432/database" in str(raised.value)
    assert "pw-of-mine" not in str(raised.value)


def test_secrets_in_steps_are_refused_and_so_are_misspelt_ones() -> None:
    with pytest.raises(InvalidPipeline) as raised:
        checked(
            small(
                steps=[{"sql": "SELECT '${env:X}' FROM orders"}],
                sinks=[{"topic": "${enf:X}"}, {"topic": "${env:X}"}],
                client={"client.id": "${env:X}"},
                bootstrap="${env:X}",
            )
        )
    text = str(raised.value)
    assert "steps[0].sql: a secret can stand in sources, tables, sinks and client only" in text
    assert "client.client.id: Spark shows this setting" in text
    assert "bootstrap: an address is no secret" in text
    assert "sinks[1]: `topic`: Spark shows names of topics" in text
    assert "sinks[0].topic: `${enf:X}`: write ${env:NAME} or ${file:PATH}" in text


def test_references_are_found_however_deep() -> None:
    assert references({"a": ["${env:A}", {"b": "x${file:B}y${env:C}"}]}) == ["${env:A}", "${file:B}", "${env:C}"]
