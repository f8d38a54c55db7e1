"""What other people's code relies on is named in docs/api.md, and does not change by accident."""

import importlib
import re

from tests.unit.test_docs import ROOT, load_tool

TOOL = load_tool("record_public_api")
PAGE = (ROOT / "docs/api.md").read_text()


def test_nothing_public_has_changed_unnoticed() -> None:
    recorded = (ROOT / "docs/public-api.txt").read_text()
    assert recorded == TOOL.render(), (
        "something public has changed. If that is wanted, run tools/record_public_api.py, and say in CHANGELOG.md what "
        "users of the old one do"
    )


def test_the_page_lists_what_is_public_and_nothing_else() -> None:
    rows = re.findall(r"^\| `(ottla\.[\w.]+)` \| ([^|]+) \|", PAGE, re.MULTILINE)
    listed = {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}
    promised = {module: set(names) for module, names in TOOL.PUBLIC.items() if module != "ottla.model.errors"}
    assert listed == promised
    assert "`OttlaError`" in PAGE


def test_public_names_can_be_imported() -> None:
    for module, names in TOOL.PUBLIC.items():
        imported = importlib.import_module(module)
        assert [name for name in names if not hasattr(imported, name)] == [], module


def test_the_page_names_every_variable_that_is_read() -> None:
    read = {
        name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r"\"(OTTLA_[A-Z_]+)\"", path.read_text())
    }
    assert read == set(re.findall(r"`(OTTLA_[A-Z_]+)`", PAGE))


def test_a_changed_signature_is_seen() -> None:
    """The record is made of signatures, fields, options and commands: one of each."""
    recorded = TOOL.render()
    for line in (
        "  def cluster(brokers: int=3, *, settings: Mapping[str, SettingValue] | None=None,",
        "    @property def bootstrap(self) -> str",
        "    already_there: bool = False",
        "  join: with, on, type='inner'",
        "  ottla topics, kafka-topics[.sh]",
    ):
        assert line in recorded
