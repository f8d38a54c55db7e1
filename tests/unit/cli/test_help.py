"""`--help` of every command has examples that name it, and the console tools teach what they do."""

import pytest

from ottla.cli.main import main
from ottla.cli.names import COMMANDS
from ottla.cli.pipeline import backup
from ottla.cli.pipeline.command import SUBCOMMANDS

NAMES = [
    *([command.name] for command in COMMANDS),
    *(["pipeline", name] for name in SUBCOMMANDS),
    *(["backup", name] for name in backup.SUBCOMMANDS),
]
# These are not parsed by us: two show the commands below them, one hands everything on.
OVERVIEWS = (["pipeline"], ["backup"], ["run-class"])


DATA_TOOLS = [
    "console-producer", "console-consumer", "producer-perf-test", "consumer-perf-test", "e2e-latency",
    "verifiable-producer", "verifiable-consumer",
]  # fmt: skip


def shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit):
        main([*arguments, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OVERVIEWS], ids=" ".join)
def test_every_help_has_examples(name: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _before, found, examples = shown(name, capsys).rpartition("\nexamples:\n")
    assert found
    assert name[-1] in examples


@pytest.mark.parametrize("name", DATA_TOOLS)
def test_examples_come_last(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = shown([name], capsys).rpartition("\nexamples:\n")[2]
    assert all(line.startswith("  ") for line in examples.splitlines() if line), examples


@pytest.mark.parametrize("name", ["console-producer", "console-consumer"])
def test_console_tools_say_what_happens_without_a_broker(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown([name], capsys)
    assert "without a broker" in text
    assert "module:function" in text
    assert "exit" in text
