"""A real browser: Playwright with Debian's chromium. Where either is missing the tests are skipped, and say so."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.world import World
from tests.browser.world import world as made_world
from tests.console.conftest import CLUSTER, Running, Site

from ottla.console.access.gate import AccessSettings
from ottla.console.clusters import ClusterSettings
from ottla.testing import RunningBroker
from ottla.testing.registry import registry

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AXE = Path(__file__).parents[2] / "build/browser/node_modules/axe-core/axe.min.js"
PATIENCE_MS = 60_000
WIDE, NARROW = {"width": 1200, "height": 800}, {"width": 390, "height": 780}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright here: `make browser` installs it, or `pip install playwright`"
    )
    found = os.environ.get("OTTLA_BROWSER") or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no chromium here: `apt-get install chromium`, or name one in OTTLA_BROWSER")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def console(browser: object, ottla_broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("console")
    (home / "orders.yaml").write_text("name: orders\n")
    with registry(ottla_broker.bootstrap) as schemas:
        settings = ClusterSettings(
            CLUSTER, {"bootstrap.servers": ottla_broker.bootstrap}, registry=schemas.url,
            pipeline_files=str(home), state_dir=str(home / "state"), backups=(str(home / "backups"),),
        )  # fmt: skip
        running = Running(settings, AccessSettings())
        yield Site(running.url)
        running.stop()


@pytest.fixture(scope="session")
def axe() -> str:
    """The program of axe-core, which is run in a page."""
    path = Path(os.environ.get("OTTLA_AXE") or AXE)
    if not path.exists():
        pytest.skip("no axe-core here: `make browser` fetches it where there is npm, or name axe.min.js in OTTLA_AXE")
    return path.read_text(encoding="utf-8")


class Tab:
    """A page of a browser; what its console says, what it loads from elsewhere and what fails in it is kept."""

    def __init__(self, browser: Any, site: Site, size: dict[str, int], scheme: str) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.base = f"http://{site._address}/c/{CLUSTER}"
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._asked)
        self.page.on("request", self._seen)

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning") and "404" not in message.text:
            self.complaints.append(message.text)

    def _asked(self, dialog: Any) -> None:
        self.complaints.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _seen(self, request: Any) -> None:
        if not request.url.startswith(self.base.partition("/c/")[0]):
            self.elsewhere.append(request.url)

    def go(self, path: str) -> None:
        self.page.goto(self.base + path)

    def is_well(self) -> None:
        assert not self.complaints
        assert not self.elsewhere
        wide = self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert wide, f"{self.page.url} is wider than the screen"


@pytest.fixture(params=["wide", "narrow"])
def tab(request: pytest.FixtureRequest, browser: Any, console: Site) -> Iterator[Tab]:
    wide = request.param == "wide"
    made = Tab(browser, console, WIDE if wide else NARROW, "light" if wide else "dark")
    yield made
    made.context.close()


@pytest.fixture(scope="session")
def world(browser: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with made_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def wide(browser: Any, world: World) -> Iterator[Tab]:
    """A page over the world, as wide as most are."""
    made = Tab(browser, world.site, WIDE, "light")
    yield made
    made.context.close()
