"""Reference pages are written by programs; these tests keep them true."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_apis_is_current() -> None:
    assert (ROOT / "docs/apis.md").read_text() == load_tool("generate_api_docs").render(), "run make docs"


def test_the_page_of_metrics_is_current() -> None:
    assert (ROOT / "docs/metrics.md").read_text() == load_tool("generate_metrics_docs").render(), "run make docs"


def test_every_handler_file_says_which_api_it_serves() -> None:
    served = load_tool("generate_api_docs").SERVED
    for key in served:
        path = ROOT / f"src/ottla/broker/handlers/{key.name.lower()}.py"
        first_line = path.read_text().splitlines()[0]
        assert f"key {key:d}," in first_line, f"{path.name} begins with {first_line!r}"


def test_log_texts_that_operators_are_told_to_look_for_are_written_somewhere() -> None:
    """The page of clusters has a table of them; what is in backticks there is in the sources, numbers aside."""
    table = (ROOT / "docs/cluster.md").read_text().split("What to look for in the brokers' logs", 1)[1].split("\n\n")[1]
    sources = "".join(
        path.read_text() for folder in ("broker", "cluster") for path in (ROOT / "src/ottla" / folder).rglob("*.py")
    )
    told = [text for line in table.splitlines()[2:] for text in line.split("|")[1].split("`")[1::2]]
    assert len(told) > 15
    for text in told:
        words = [part.strip() for part in re.split(r"\b[\d,]*\d\b|Shrinking|Expanding", text) if part.strip()]
        for part in words:
            assert part in sources, f"no log line has {part!r}"


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def prose(page: Path) -> str:
    """A page without its code, where brackets are not links and # begins a comment."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """How the headings of a page are linked to, as hosts of repositories and the site's generator make it."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    for target in [target for target in targets if not target.startswith(("http:", "https:"))]:
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} links to {target}"
        assert found.is_relative_to(ROOT), f"{page.name} links to {target}, outside of this project"
        if anchor:
            assert anchor in anchors(found), f"{page.name} links to {target}: {found.name} has no such heading"
