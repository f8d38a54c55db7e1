"""kafka-configs against a real broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.cli.admin.configs import parse_additions
from ottla.cli.common.output import CommandError
from ottla.cli.main import main
from ottla.testing import RunningBroker

Unique = Callable[[str], str]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def configs(ottla_broker: RunningBroker) -> Callable[..., int]:
    return lambda *arguments: main(["configs", "--bootstrap-server", ottla_broker.bootstrap, *arguments])


@pytest.fixture
def topic(ottla_broker: RunningBroker, unique: Unique, capsys: Captured) -> str:
    name = unique("configured")
    assert main(["topics", "--bootstrap-server", ottla_broker.bootstrap, "--create", "--topic", name]) == 0
    capsys.readouterr()
    return name


def test_add_show_and_delete(configs: Callable[..., int], topic: str, capsys: Captured) -> None:
    named = ["--entity-type", "topics", "--entity-name", topic]
    assert configs("--alter", *named, "--add-config", "segment.ms=60000,cleanup.policy=[compact,delete]") == 0
    assert capsys.readouterr().out == f"Completed updating config for topic {topic}.\n"
    assert configs("--describe", "--topic", topic) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"Dynamic configs for topic {topic} are:"
    assert shown[1].startswith("  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")
    assert shown[2].startswith("  segment.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.ms=60000")
    assert len(shown) == 3
    assert configs("--alter", "--topic", topic, "--delete-config", "segment.ms,retention.ms") == 0
    assert "retention.ms was not set" in capsys.readouterr().err
    assert configs("--describe", *named, "--json") == 0
    [described] = json.loads(capsys.readouterr().out)
    assert [setting["name"] for setting in described["configs"]] == ["cleanup.policy"]


def test_all_shows_defaults_too(configs: Callable[..., int], topic: str, capsys: Captured) -> None:
    assert configs("--describe", "--topic", topic, "--all") == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"All configs for topic {topic} are:\n")
    assert "  retention.ms=604800000 sensitive=false" in shown


def test_settings_from_a_file(configs: Callable[..., int], topic: str, capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "topic.properties"
    file.write_text("# kept a minute\nretention.ms = 60000\nmax.message.bytes: 2000\n")
    assert configs("--alter", "--topic", topic, "--add-config-file", str(file)) == 0
    capsys.readouterr()
    assert configs("--describe", "--topic", topic, "--json") == 0
    [described] = json.loads(capsys.readouterr().out)
    assert {s["name"]: s["value"] for s in described["configs"]} == {
        "retention.ms": "60000",
        "max.message.bytes": "2000",
    }


def test_a_broker_and_the_defaults_of_all(ottla_fresh_broker: RunningBroker, capsys: Captured) -> None:
    def configs(*arguments: str) -> str:
        assert main(["configs", "--bootstrap-server", ottla_fresh_broker.bootstrap, *arguments]) == 0
        return capsys.readouterr().out

    said = configs("--alter", "--broker-defaults", "--add-config", "log.retention.ms=3600000")
    assert said == "Completed updating default config for brokers in the cluster.\n"
    configs("--alter", "--broker", "1", "--add-config", "log.retention.ms=7200000")
    shown = configs("--describe", "--entity-type", "brokers")
    assert "Dynamic configs for broker 1 are:\n  log.retention.ms=7200000 " in shown
    assert "Default configs for brokers in the cluster are:\n  log.retention.ms=3600000 " in shown
    configs("--alter", "--entity-type", "brokers", "--entity-default", "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in configs("--describe", "--broker-defaults")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--alter", "--topic", "absent-topic", "--add-config", "retention.ms=1"], "topic absent-topic: "),
        (["--describe", "--topic", "absent-topic"], "topic absent-topic: "),
        (["--describe", "--entity-type", "sheep"], "not a kind of thing"),
        (["--describe"], "say whose settings"),
        (["--describe", "--topic", "a", "--broker", "1"], "say whose settings, once"),
        (["--describe", "--topic", "a", "--entity-type", "topics"], "do not go with"),
        (["--describe", "--broker", "one"], "by its number"),
        (["--describe", "--broker", "77"], "no broker 77"),
    ],
)
def test_what_cannot_be_done_is_said(
    configs: Callable[..., int], arguments: list[str], words: str, capsys: Captured
) -> None:
    assert configs(*arguments) == 1
    assert words in capsys.readouterr().err


def test_values_that_the_broker_refuses_are_passed_on(
    configs: Callable[..., int], topic: str, capsys: Captured
) -> None:
    assert configs("--alter", "--topic", topic, "--add-config", "retention.ms=soon") == 1
    error = capsys.readouterr().err
    assert topic in error
    assert "retention.ms" in error


def test_additions() -> None:
    assert parse_additions("a=1,b=[x,y],c=,d.e-f=[z]") == {"a": "1", "b": "x,y", "c": "", "d.e-f": "z"}
    for text in ("a", "a=1,b", "=1", "a=1,,b=2", "a b=1"):
        with pytest.raises(CommandError, match="--add-config"):
            parse_additions(text)
