"""The frame of the command line: one table of names, and what is installed agrees with it."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.cli.names import COMMANDS, SCRIPT_ENTRY_POINT, Command, script_names

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_installed_executables_are_the_ones_in_the_table() -> None:
    scripts = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]
    expected = dict.fromkeys(script_names(), SCRIPT_ENTRY_POINT)
    assert scripts == {"ottla": "ottla.cli.main:main", **expected}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_in_the_table_has_a_module(command: Command) -> None:

    assert importlib.util.find_spec(f"ottla.cli.{command.module}") is not None


def test_no_script_or_class_names_two_commands() -> None:
    classes = [java_class for command in COMMANDS for java_class in command.classes]
    assert len(classes) == len(set(classes))
    assert len({command.name for command in COMMANDS}) == len(COMMANDS)


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {command.name} " in shown for command in COMMANDS)


def test_a_mistyped_command_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topic"]) == 1
    assert "did you mean `topics`?" in capsys.readouterr().err


def test_run_class_knows_old_and_new_class_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-class", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "kafka.tools.DumpLogSegments" in shown
    assert "org.apache.kafka.tools.ProducerPerformance" in shown


def test_run_class_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-class", "kafka.tools.DumpLogSegment"]) == 1
    assert "Did you mean kafka.tools.DumpLogSegments?" in capsys.readouterr().err
