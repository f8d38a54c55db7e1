"""Pipelines of a folder, started from the console: those and no others, by admins, and seen until they end.

A program of the test's own stands in for `ottla pipeline`: it says it runs, and ends when it is told to.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ottla.console import starting, tools
from ottla.console.access.gate import AccessSettings
from ottla.console.access.roles import BUILT_IN, Role
from ottla.console.asking import Right
from ottla.console.starting import files_of
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

from .conftest import Open, Site
from .test_pages import check

RUN = """
import os, sys, time
from pathlib import Path
home = Path(sys.argv[3]).parent.parent
if "broken" in sys.argv[3]:
    print("error: <b>line 3</b> is not YAML")
    sys.exit(2)
(home / "ran").write_text(" ".join([*sys.argv[1:], os.environ["OTTLA_BOOTSTRAP"]]))
give_up = time.monotonic() + 300
while not (home / "stop").exists() and time.monotonic() < give_up:
    time.sleep(0.05)
(home / "ran").unlink()
"""
STATUS = """
import json, sys
from pathlib import Path
file = Path(sys.argv[3])
home = file.parent.parent
running = file.stem == "orders" and (home / "ran").exists()
more = {"http": (home / "url").read_text(), "pid": 1} if running else {"state": "never run"}
print(json.dumps([{"pipeline": file.stem, "running": running, "queries": [], **more}]))
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with one pipeline that runs, one that does not, and what is none of them."""
    monkeypatch.setattr(starting, "PROGRAM", RUN)
    monkeypatch.setattr(tools, "PROGRAM", STATUS)
    folder = tmp_path / "files"
    folder.mkdir()
    for name in ("orders.yaml", "broken.yaml", "notes.txt", "-x.yaml", ".hidden.yaml"):
        (folder / name).write_text("x")
    (tmp_path / "outside.yaml").write_text("x")
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    driver = HTTPServer(("127.0.0.1", 0), Driver)
    driver.stop_file = tmp_path / "stop"  # type: ignore[attr-defined]
    Thread(target=driver.serve_forever, daemon=True).start()
    (tmp_path / "url").write_text(f"http://127.0.0.1:{driver.server_port}")
    yield tmp_path
    (tmp_path / "stop").touch()
    wait_until(lambda: not (tmp_path / "ran").exists(), "what was started to end", seconds=60)
    driver.shutdown()
    driver.server_close()


class Driver(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"pipelines": [{"pipeline": "orders", "state": "running", "queries": []}]})

    def do_POST(self) -> None:
        self.server.stop_file.touch()  # type: ignore[attr-defined]
        self._answer({"stopping": ["orders"]})

    def _answer(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def told(home: Path) -> dict[str, Any]:
    return {"pipeline_files": str(home / "files"), "state_dir": str(home / "state")}


def row(site: Site, file: str) -> dict[str, Any]:
    (found,) = [each for each in site.api("/pipelines")["files"] if each["file"] == file]
    return dict(found)


@pytest.mark.timeout(300)
def test_a_pipeline_is_started_seen_and_stopped(open_console: Open, home: Path, ottla_broker: RunningBroker) -> None:
    site = open_console(**told(home))
    assert [each["file"] for each in site.api("/pipelines")["files"]] == ["broken.yaml", "orders.yaml"]
    form = {"file": "orders.yaml", "confirm": "orders.yaml"}
    assert site.submit("/pipelines/start", {**form, "confirm": "yes"}, on="/topics/new").status == 400
    page = site.page("/pipelines")
    check(page)
    command = f"ottla pipeline run {home}/files/orders.yaml --state-dir {home}/state"
    assert command in page.text
    assert site.submit("/pipelines/start", form, on="/topics/new").status == 303
    wait_until((home / "ran").exists, "the process", seconds=60)
    ran = (home / "ran").read_text()
    assert ran.startswith(command.removeprefix("ottla "))
    assert ran.split()[-1] == ottla_broker.bootstrap
    again = site.submit("/pipelines/start", form, on="/topics/new")
    assert (again.status, "runs already" in again.text) == (409, True)
    wait_until(lambda: row(site, "orders.yaml")["running"], "its status", seconds=60)
    assert [driver["pipelines"][0]["pipeline"] for driver in site.api("/pipelines")["drivers"]] == ["orders"]
    assert site.api("/")["pipelines"]["drivers"] == 1
    site.do("/pipelines/stop", pipeline="orders", confirm="orders")
    wait_until(lambda: row(site, "orders.yaml")["run"]["code"] == 0, "its end", seconds=60)
    assert "does not answer" not in site.page("/").text


def test_what_ends_at_once_says_why(open_console: Open, home: Path) -> None:
    site = open_console(**told(home))
    answer = site.submit("/pipelines/start", {"file": "broken.yaml", "confirm": "broken.yaml"}, on="/topics/new")
    assert answer.status == 409
    assert "&lt;b&gt;line 3&lt;/b&gt; is not YAML" in answer.text
    page = site.page("/pipelines")
    check(page)
    assert "ended with code 2" in page.text


def test_nobody_starts_what_is_not_in_the_folder(open_console: Open, home: Path) -> None:
    site = open_console(**told(home))
    for name in ("../outside.yaml", "link.yaml", "notes.txt", ".hidden.yaml", "-x.yaml", str(home / "outside.yaml")):
        assert name not in files_of(str(home / "files"))
        assert site.submit("/pipelines/start", {"file": name, "confirm": name}, on="/topics/new").status == 400
    operator = open_console(AccessSettings(open_role=BUILT_IN["operator"]), **told(home))
    form = {"file": "orders.yaml", "confirm": "orders.yaml"}
    assert operator.submit("/pipelines/start", form, on="/topics/new").status == 403
    assert "Start orders.yaml" not in operator.page("/pipelines").text
    limited = open_console(AccessSettings(open_role=Role("few", Right.ADMIN, ("mine*",), ())), **told(home))
    refused = limited.submit("/pipelines/start", form, on="/topics/new")
    assert (refused.status, "sees every topic" in refused.text) == (403, True)
    flow = {"flow": "dr.a-b", "confirm": "dr.a-b"}
    assert limited.submit("/mirroring/promote", flow, on="/topics/new").status == 403
    assert not (home / "ran").exists()
    assert files_of("") == files_of(str(home / "no such folder")) == {}
