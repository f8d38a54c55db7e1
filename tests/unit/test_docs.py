"""Reference pages are written by programs; these tests keep them true."""

import importlib.util
from pathlib import Path
from types import ModuleType

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


def test_every_handler_file_says_which_api_it_serves() -> None:
    served = load_tool("generate_api_docs").SERVED
    for key in served:
        path = ROOT / f"src/ottla/broker/handlers/{key.name.lower()}.py"
        first_line = path.read_text().splitlines()[0]
        assert f"key {key:d}," in first_line, f"{path.name} begins with {first_line!r}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in [part.split(")")[0] for part in page.read_text().split("](")[1:]]:
            if not target.startswith(("http", "#")):
                assert (page.parent / target.split("#")[0]).exists(), f"{page.name} links to {target}"
