"""docs/pipelines.md names every key that a pipeline file can have, with its default, and every command."""

import re
from pathlib import Path

import msgspec
import pytest

from ottla.cli.pipeline.command import SUBCOMMANDS
from ottla.pipelines.connectors.registry import SINKS, SOURCES
from ottla.pipelines.lint import check
from ottla.pipelines.loading import Document, read_yaml
from ottla.pipelines.spec import Case, Errors, Limits, Phase, Pipeline
from ottla.spark.formats.api import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "pipelines.md").read_text()


def rows(title: str) -> dict[str, list[str]]:
    """The rows of the table whose first cell is `title`, by the keys in their first cells."""
    table = PAGE[PAGE.rindex(f"| {title} |") :].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in table]
    return {key: row[1:] for row in cells for key in re.findall(r"`(\w+)`", row[0])}


@pytest.mark.parametrize(
    ("title", "struct"), [("key", Pipeline), ("`errors`", Errors), ("`limits`", Limits), ("`tests`", Case)]
)
def test_the_tables_name_every_key(title: str, struct: type[msgspec.Struct]) -> None:
    assert set(rows(title)) == set(struct.__struct_fields__)


def test_defaults_are_those_of_the_file() -> None:
    errors = rows("`errors`")
    assert errors["retries"][-1] == str(Errors().retries)
    assert errors["restart"][-1] == f"`{Errors().restart}`"
    assert errors["backoff"][-1] == f"{Errors().backoff}, {Errors().backoff_max}"
    assert rows("`limits`")["trigger"][-1] == Limits().trigger


def test_a_phase_has_the_parts_that_the_page_says() -> None:
    said = set(re.findall(r"`(\w+)`", rows("key")["phases"][0]))
    assert said == set(Phase.__struct_fields__)


def test_kinds_and_formats_are_all_named() -> None:
    assert set(re.findall(r"`(\w+)`", rows("key")["sources"][0])) == set(SOURCES.kinds())
    assert set(re.findall(r"`(\w+)`", rows("key")["sinks"][0])) == set(SINKS.kinds())
    said = re.search(r"`format` \((?P<names>[^)]*)\)", PAGE.replace("\n", " "))
    assert said is not None
    assert set(re.findall(r"`(\w+)`", said["names"])) == set(FORMATS)


def test_every_command_is_named() -> None:
    assert set(re.findall(r"ottla pipeline ([\w-]+)", PAGE)) - {"run"} == set(SUBCOMMANDS) - {"run"}


def test_the_file_of_the_page_is_fine() -> None:
    text = PAGE.split("```yaml\n")[1].split("```")[0]
    values, lines = read_yaml(Path("page.yaml"), text)
    checked = check(Document(path=Path("page.yaml"), values=values, lines=lines))
    assert checked.name == "orders-enriched"
