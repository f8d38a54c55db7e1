"""The site is made from the pages of the repository: all of them, and with nothing loaded from other servers."""

from pathlib import Path

import pytest
from tests.unit.test_docs import PAGES, ROOT, load_tool

TOOL = load_tool("build_site")


def test_the_menu_has_every_page_once_and_no_other() -> None:
    listed = [
        page for section in TOOL.menu() for entries in section.values() for each in entries for page in each.values()
    ]
    assert sorted(listed) == sorted(str(page.relative_to(ROOT)) for page in PAGES)
    assert listed[0] == "README.md"
    gone = {page for section in TOOL.MENU.values() for page in section} - set(listed)
    assert gone == set(), "the menu names pages that are not there"


def test_a_new_page_is_found_without_being_named(tmp_path: Path) -> None:
    (tmp_path / "docs" / "decisions").mkdir(parents=True)
    (tmp_path / "README.md").write_text("# Ottla\n")
    (tmp_path / "docs" / "new.md").write_text("# Something `new`\n")
    (tmp_path / "docs" / "decisions" / "0001-why.md").write_text("# 0001: Why\n")
    assert TOOL.menu(tmp_path) == [
        {"Start": [{"Ottla": "README.md"}]},
        {"More": [{"Something new": "docs/new.md"}]},
        {"Decisions": [{"0001: Why": "docs/decisions/0001-why.md"}]},
    ]


def test_a_page_without_a_heading_is_told(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("Ottla\n")
    with pytest.raises(SystemExit, match="has no heading"):
        TOOL.menu(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://cdn.example/x.js"></script>', True),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ("<img alt='' src='http://badges.example/x.svg'>", True),
        ('<link rel="stylesheet" href="css/theme.css"><a href="https://semver.org">versions</a>', False),
    ],
)
def test_what_a_browser_would_load_from_elsewhere_is_found(tmp_path: Path, text: str, found: bool) -> None:
    (tmp_path / "index.html").write_text(text)
    assert bool(TOOL.loaded_from_elsewhere(tmp_path)) is found


def test_style_sheets_are_looked_into(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("body { background: url(https://images.example/x.png) }")
    (tmp_path / "b.css").write_text("body { background: url(../img/x.png) }")
    assert [line.partition(":")[0] for line in TOOL.loaded_from_elsewhere(tmp_path)] == ["a.css"]


def test_tables_after_comments_stay_tables(tmp_path: Path) -> None:
    TOOL.stage(ROOT, tmp_path / "staged")
    text = (tmp_path / "staged/docs/connectors.md").read_text()
    assert "as source -->\n\n| option" in text
    assert (tmp_path / "staged/LICENSE").exists()
