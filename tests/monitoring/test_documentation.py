"""docs/monitoring.md: its commands have the options that it uses, and its files can be read."""

import re
import shlex
from pathlib import Path

import pytest

from ottla.cli.common.options import read_text
from ottla.cli.monitor import command, top
from ottla.monitoring.burrow_config import read_burrow

PAGE = (Path(__file__).parents[2] / "docs/monitoring.md").read_text()
COMMANDS = re.findall(r"(?:^\$ |`)ottla (monitor|top)( [^\n`|]*)?", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "arguments"), COMMANDS)
def test_commands_have_these_options(name: str, arguments: str) -> None:
    parser = (command if name == "monitor" else top).parser_of(f"ottla {name}")
    parser.parse_args(shlex.split(arguments))


def test_the_file_of_burrow_is_read() -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    found = read_burrow(text, "page", read_text)
    assert found.without_effect == ()
    assert [each.rule.name for each in found.notifiers] == ["chat", "mail"]


def test_options_in_the_text_exist() -> None:
    known = {
        option
        for parser in (command.parser_of("ottla monitor"), top.parser_of("ottla top"))
        for action in parser._actions
        for option in action.option_strings
    }
    elsewhere = {
        "--host",
        "--data",
        "--set",
        "--create",
        "--group",
        "--from-beginning",
        "--max-messages",
        "--config.file",
        "--port",
        "--storage.tsdb.path",
        "--web.listen-address",
    }
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z.-]+", PAGE))
    assert used - elsewhere <= known
