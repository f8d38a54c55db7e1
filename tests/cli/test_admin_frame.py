"""The frame of the command line: one table of names, and what is installed agrees with it."""

import importlib.util
import tomllib
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.cli.names import (
    BY_CLASS,
    BY_NAME,
    BY_SCRIPT,
    COMMANDS,
    NOT_YET_BY_CLASS,
    NOT_YET_BY_NAME,
    SCRIPT_ENTRY_POINT,
    Command,
    script_names,
)

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


@pytest.mark.parametrize(
    ("java_class", "told"),
    [
        ("org.apache.kafka.tools.ShareConsumerPerformance", "share groups are not served yet"),
        ("kafka.tools.ConsumerOffsetChecker", "use consumer-groups --describe"),
        ("org.apache.kafka.tools.OAuthCompatibilityTool", "run-class --help` lists the classes."),
    ],
)
def test_a_class_that_is_not_there_is_not_taken_for_another(
    java_class: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run-class", java_class]) == 1
    error = capsys.readouterr().err
    assert f"no tool stands in for the Java class {java_class}" in error
    assert told in error
    assert "Did you mean" not in error


def test_a_tool_of_kafkas_that_is_not_there_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["share-groups"]) == 1
    expected = "error: there is no command `share-groups`: share groups are not served yet.\n"
    assert capsys.readouterr().err == expected


def test_what_is_not_there_yet_is_not_there() -> None:
    assert not set(NOT_YET_BY_CLASS) & set(BY_CLASS)
    assert not set(NOT_YET_BY_NAME) & (set(BY_SCRIPT) | set(BY_NAME))


def test_only_servers_run_in_the_background(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-class", "-daemon", "kafka.admin.TopicCommand", "--list"]) == 1
    assert "-daemon is for brokers and ZooKeeper" in capsys.readouterr().err


def test_run_class_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run-class", "kafka.tools.DumpLogSegment"]) == 1
    assert "Did you mean kafka.tools.DumpLogSegments?" in capsys.readouterr().err
