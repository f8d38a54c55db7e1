"""Every route of the console, tried by those who may not: nobody, viewers, and browsers that another site has sent."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from starlette.routing import Route
from tests.console.browsing import Browser

from ottla.console import process
from ottla.console.access.gate import AccessSettings, Gate
from ottla.console.access.passwords import hash_password
from ottla.console.access.users import parse_access
from ottla.console.app import API, CLUSTER, Console, Entry
from ottla.console.asking import Ask, NotThere, Right
from ottla.console.clusters import Clusters, ClusterSettings
from ottla.console.process import application
from ottla.console.routes import ENTRIES

PASSWORD = "correct horse"
HASH = hash_password(PASSWORD)
FILE = parse_access(
    {
        "roles": {"few": {"right": "admin", "topics": ["mine*"]}},
        "users": {
            name: {"password": HASH, "role": role}
            for name, role in (("vic", "viewer"), ("oscar", "operator"), ("ada", "admin"), ("finn", "few"))
        },
    }
)
PUBLIC = {"/healthz", "/sign-in"}


def path_of(template: str) -> str:
    """With something for each part that has a name."""
    return re.sub(r"\{[^}]*\}", lambda part: "one" if part[0] == "{cluster}" else "1", template)


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate(AccessSettings(FILE), failure_seconds=0)


@pytest.fixture(scope="module")
def console(gate: Gate) -> Iterator[Console]:
    """Of a cluster that is not there: who is refused is refused before it is asked for anything."""

    async def make() -> Console:
        return Console(Clusters([ClusterSettings("one", {"bootstrap.servers": "127.0.0.1:1"})]), gate)

    made = asyncio.run(make())
    yield made
    asyncio.run(made.close())


@pytest.fixture(scope="module")
def browsers(console: Console) -> dict[str, Browser]:
    app = application(console).app
    found = {"nobody": Browser(app)}
    for name in ("vic", "oscar", "ada", "finn"):
        found[name] = Browser(app)
        assert found[name].post("/sign-in", {"name": name, "password": PASSWORD}).status_code == 303
    return found


def token(gate: Gate, browser: Browser) -> str:
    session = gate.sessions.find(browser.cookies[gate.cookie], gate.now())
    assert session is not None
    return session.csrf


def test_nobody_gets_anything_but_the_sign_in(browsers: dict[str, Browser], console: Console) -> None:
    tried = 0
    for route in application(console).app.routes:
        if not isinstance(route, Route) or route.path in PUBLIC:
            continue
        for method in (route.methods or set()) - {"HEAD"}:
            browser = browsers["nobody"]
            answer = (browser.get if method == "GET" else browser.post)(path_of(route.path))
            assert answer.status_code in {303, 401}, f"{method} {route.path}"
            if answer.status_code == 303:
                assert answer.headers["location"].startswith("/sign-in")
            tried += 1
    assert tried > len(ENTRIES)


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def test_a_viewer_changes_nothing_by_any_request(console: Console, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every address that the router knows, with every method: which views that leads to, by who asks."""
    reached: set[tuple[str, str]] = set()

    def watched(entry: Entry) -> Entry:
        async def view(ask: Ask) -> dict[str, object]:
            reached.add((entry.method, entry.path))
            raise NotThere("seen")

        return entry._replace(view=view)

    monkeypatch.setattr(process, "ENTRIES", [watched(entry) for entry in ENTRIES])
    app = application(console).app
    addresses = {path_of(getattr(route, "path", "")) for route in app.routes}
    assert len(addresses) > len({entry.path for entry in ENTRIES})
    changing = {(entry.method, entry.path) for entry in ENTRIES if entry.changes or entry.right > Right.VIEWER}
    for name in ("vic", "ada"):
        browser = Browser(app)
        assert browser.post("/sign-in", {"name": name, "password": PASSWORD}).status_code == 303
        own = {"csrf": token(gate, browser)}
        for address in sorted(addresses - {"/sign-out"}):
            for method in METHODS:
                browser.send(method, address, own)
        if name == "vic":
            assert not reached & changing
    assert reached == {(entry.method, entry.path) for entry in ENTRIES}, "an admin comes everywhere"
    signing = {"/sign-in", "/sign-out"}
    posts = {route.path for route in app.routes if isinstance(route, Route) and "POST" in (route.methods or ())}
    known = {prefix + entry.path for entry in ENTRIES if entry.method == "POST" for prefix in (CLUSTER, API + CLUSTER)}
    assert posts - signing <= known, "what is not in the table is not tried above"


@pytest.mark.parametrize("name", ["vic", "oscar"])
def test_who_lacks_the_right_changes_nothing_by_any_request(
    browsers: dict[str, Browser], gate: Gate, name: str
) -> None:
    browser = browsers[name]
    right = {"vic": Right.VIEWER, "oscar": Right.OPERATOR}[name]
    own = {"csrf": token(gate, browser)}
    refused = 0
    for entry in ENTRIES:
        if entry.right <= right:
            continue
        for prefix in ("/c/one", "/api/c/one"):
            path = path_of(prefix + entry.path)
            answer = browser.get(path) if entry.method == "GET" else browser.post(path, own)
            assert answer.status_code in {403, 404, 405}, f"{entry.method} {path}"
            assert entry.raw or entry.template is None or answer.status_code == 403 or prefix == "/api/c/one"
            refused += answer.status_code == 403
    assert refused >= 5
    changing = [entry for entry in ENTRIES if entry.changes]
    assert all(entry.method != "GET" for entry in changing)
    assert all(entry.right > Right.VIEWER for entry in changing), "a viewer has nothing to change"


def test_no_change_without_the_token_or_from_another_site(browsers: dict[str, Browser], gate: Gate) -> None:
    browser = browsers["ada"]
    own = {"csrf": token(gate, browser)}
    for entry in ENTRIES:
        if not entry.changes:
            continue
        for prefix in ("/c/one", "/api/c/one"):
            path = path_of(prefix + entry.path)
            assert browser.post(path).status_code == 403, path
            assert browser.post(path, {"csrf": "wrong"}).status_code == 403, path
            foreign = browser.post(path, own, headers={"Origin": "http://evil.example"})
            assert foreign.status_code == 403, path
            rebound = browser.post(path, own, headers={"Host": "rebound.example"})
            assert rebound.status_code == 421, path


def test_topics_that_are_not_theirs_are_not_there(browsers: dict[str, Browser], gate: Gate) -> None:
    browser = browsers["finn"]
    own = {"csrf": token(gate, browser)}
    tried = 0
    for entry in ENTRIES:
        if "{topic}" not in entry.path:
            continue
        path = path_of("/c/one" + entry.path)
        answer = browser.get(path) if entry.method == "GET" else browser.post(path, own)
        assert answer.status_code == 404, path
        tried += 1
    assert tried >= 5
