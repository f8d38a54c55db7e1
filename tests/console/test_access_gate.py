"""The gate in front of an application: sign-in, sessions, changes, other sites' requests, programs, the audit log."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from tests.console.browsing import Answer, Browser

from ottla.console.access.audit import ConsoleAudit
from ottla.console.access.gate import AccessSettings, Gate
from ottla.console.access.passwords import hash_password
from ottla.console.access.users import parse_access
from ottla.console.asking import Right

PASSWORD = "correct horse"
HASH = hash_password(PASSWORD)
FILE = parse_access(
    {
        "roles": {"few": {"right": "operator", "topics": ["orders*"]}},
        "users": {
            "vic": {"password": HASH, "role": "viewer"},
            "oscar": {"password": HASH, "role": "operator"},
            "ada": {"password": HASH, "role": "admin"},
            "finn": {"password": HASH, "role": "few"},
        },
    }
)
WITH_USERS = AccessSettings(FILE)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def application(gate: Gate) -> Starlette:
    def view(needed: Right, changes: bool) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            caller = await gate.admit(request, needed, changes)
            if changes:
                gate.note(caller, request, "a change", "it was done", True)
            body = (await request.body()).decode() if changes else ""
            return gate.finish(request, JSONResponse({"name": caller.name, "csrf": caller.csrf, "body": body}))

        return answer

    routes = [
        *gate.routes(),
        Route("/c/{cluster}/topics/{topic}", view(Right.VIEWER, False), methods=["GET"]),
        Route("/c/{cluster}/see", view(Right.VIEWER, False), methods=["GET"]),
        Route("/c/{cluster}/change", view(Right.OPERATOR, True), methods=["POST"]),
        Route("/c/{cluster}/rule", view(Right.ADMIN, True), methods=["POST"]),
        Route("/api/c/{cluster}/see", view(Right.VIEWER, False), methods=["GET"]),
        Route("/api/c/{cluster}/change", view(Right.OPERATOR, True), methods=["POST"]),
    ]
    return Starlette(routes=routes)


Make = Callable[..., tuple[Browser, Gate]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    gates = []

    def made(settings: AccessSettings = WITH_USERS, **options: Any) -> tuple[Browser, Gate]:
        audit = ConsoleAudit(str(tmp_path / "audit.log"))
        gate = Gate(settings, audit, failure_seconds=0, **options)
        gates.append(gate)
        return Browser(application(gate), scheme="https" if settings.secure else "http"), gate

    yield made
    for gate in gates:
        gate.close()


def sign_in(client: Browser, name: str, password: str = PASSWORD, **more: str) -> Answer:
    return client.post("/sign-in", data={"name": name, "password": password, **more})


def test_without_a_session_a_page_leads_to_the_sign_in_and_the_api_says_401(make: Make) -> None:
    client, _ = make()
    answer = client.get("/c/x/see?a=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Fc%2Fx%2Fsee%3Fa%3D1")
    assert client.get("/api/c/x/see").status_code == 401
    assert client.post("/c/x/change").status_code == 401
    assert client.get("/c/x/see", headers={"X-Ottla-Fragment": "1"}).status_code == 401


def test_signing_in_and_out(make: Make) -> None:
    client, _ = make()
    page = client.get("/sign-in?next=/c/x/see")
    assert 'value="/c/x/see"' in page.text
    answer = sign_in(client, "vic", next="/c/x/see")
    assert (answer.status_code, answer.headers["location"]) == (303, "/c/x/see")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie
    assert PASSWORD not in str(answer.headers)
    found = client.get("/c/x/see").json()
    assert found["name"] == "vic"
    assert client.post("/sign-out").status_code == 403, "even that wants the token"
    assert client.post("/sign-out", data={"csrf": found["csrf"]}).status_code == 303
    assert client.get("/api/c/x/see").status_code == 401


def test_under_tls_cookies_are_for_tls_alone(make: Make) -> None:
    client, _ = make(WITH_USERS._replace(secure=True))
    cookie = sign_in(client, "vic").headers["set-cookie"]
    assert cookie.startswith("__Host-ottla-session=")
    assert "Secure" in cookie


def test_wrong_passwords_and_unknown_names_are_refused_alike(make: Make) -> None:
    client, _ = make()
    wrong, unknown = sign_in(client, "vic", "x"), sign_in(client, "nobody", "x")
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.text.replace('"vic"', "?") == unknown.text.replace('"nobody"', "?")
    assert "set-cookie" not in wrong.headers


def test_guessing_is_slowed_down(make: Make) -> None:
    clock = Clock()
    client, _ = make(now=clock)
    for _ in range(3):
        assert sign_in(client, "vic", "x").status_code == 401
    answer = sign_in(client, "vic")
    assert answer.status_code == 429, "even the right one has to wait now"
    assert int(answer.headers["retry-after"]) >= 1
    clock.now += 61
    assert sign_in(client, "vic").status_code == 303


def test_a_session_is_made_at_sign_in_and_never_taken_over(make: Make) -> None:
    client, gate = make()
    client.cookies[gate.cookie] = "chosen-by-the-attacker"
    sign_in(client, "vic")
    assert gate.sessions.find("chosen-by-the-attacker", gate.now()) is None
    first = client.cookies[gate.cookie]
    sign_in(client, "ada")
    assert gate.sessions.find(first, gate.now()) is None, "the old session ends with the new one"


def test_sessions_end(make: Make) -> None:
    clock = Clock()
    client, _ = make(now=clock)
    sign_in(client, "vic")
    clock.now += 29 * 60
    assert client.get("/api/c/x/see").status_code == 200
    clock.now += 31 * 60
    assert client.get("/api/c/x/see").status_code == 401
    sign_in(client, "vic")
    for _ in range(3):
        clock.now += 9 * 60
        assert client.get("/c/x/see", {"X-Ottla-Fragment": "1"}).status_code == 200, "the page renews itself"
    clock.now += 9 * 60
    assert client.get("/c/x/see", {"X-Ottla-Fragment": "1"}).status_code == 401, "which keeps nobody signed in"


@pytest.mark.parametrize(
    ("name", "change", "rule"), [("vic", 403, 403), ("oscar", 200, 403), ("ada", 200, 200), ("finn", 200, 403)]
)
def test_rights(make: Make, name: str, change: int, rule: int) -> None:
    client, _ = make()
    sign_in(client, name)
    token = {"csrf": client.get("/c/x/see").json()["csrf"]}
    assert client.post("/c/x/change", data=token).status_code == change
    assert client.post("/c/x/rule", data=token).status_code == rule


def test_topics_by_pattern(make: Make) -> None:
    client, _ = make()
    sign_in(client, "finn")
    assert client.get("/c/x/topics/orders-eu").status_code == 200
    assert client.get("/c/x/topics/payroll").status_code == 404
    assert client.get("/c/x/topics/ORDERS").status_code == 404


def test_a_change_needs_the_token_of_its_session(make: Make) -> None:
    client, _ = make()
    sign_in(client, "ada")
    token = client.get("/c/x/see").json()["csrf"]
    assert client.post("/c/x/change").status_code == 403
    assert client.post("/c/x/change", data={"csrf": "wrong"}).status_code == 403
    assert client.post("/c/x/change", data={"csrf": "ünrichtig"}).status_code == 403
    assert client.post("/c/x/change", document={"csrf": token}).status_code == 403, "only forms and the header carry it"
    assert client.post("/c/x/change?csrf=" + token).status_code == 403, "an address ends up in logs"
    answer = client.post("/c/x/change", data={"csrf": token, "more": "1"})
    assert answer.status_code == 200
    assert answer.json()["body"] == f"csrf={token}&more=1", "the view reads the same body"
    assert client.post("/c/x/change", headers={"X-CSRF-Token": token}).status_code == 200
    other = Browser(client.app)
    sign_in(other, "ada")
    assert other.post("/c/x/change", data={"csrf": token}).status_code == 403, "the token of another session"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_changes_nothing_even_with_the_token(make: Make, headers: dict[str, str]) -> None:
    client, _ = make()
    sign_in(client, "ada")
    token = client.get("/c/x/see").json()["csrf"]
    assert client.post("/c/x/change", data={"csrf": token}, headers=headers).status_code == 403
    assert client.post("/sign-in", data={"name": "vic", "password": PASSWORD}, headers=headers).status_code == 403
    assert client.post("/api/c/x/change", headers={**headers, **basic("ada")}).status_code == 403


def test_a_name_that_is_not_ours_is_refused(make: Make) -> None:
    client, _ = make(WITH_USERS._replace(hosts=frozenset({"console.example"})))
    for path in ("/c/x/see", "/sign-in"):
        assert client.get(path, headers={"Host": "rebound.evil"}).status_code == 421
        assert client.get(path, headers={"Host": "console.example"}).status_code in {200, 303}


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_programs_send_name_and_password_with_each_request(make: Make) -> None:
    client, gate = make()
    for _ in range(2):
        answer = client.post("/api/c/x/change", document={"a": 1}, headers=basic("oscar"))
        assert (answer.status_code, answer.json()["name"]) == (200, "oscar")
    assert "set-cookie" not in answer.headers
    assert len(gate._programs) == 1, "the hash is computed once"
    assert client.post("/api/c/x/change", headers=basic("vic")).status_code == 403
    assert client.get("/api/c/x/see", headers=basic("oscar", "x")).status_code == 401
    assert client.get("/api/c/x/see", headers={"Authorization": "Basic ?"}).status_code == 401
    assert client.get("/api/c/x/see", headers={"Authorization": "Basic " + "eA=="}).status_code == 401


def test_read_only_means_everybody(make: Make) -> None:
    client, _ = make(WITH_USERS._replace(read_only=True))
    sign_in(client, "ada")
    token = client.get("/c/x/see").json()["csrf"]
    answer = client.post("/c/x/change", data={"csrf": token})
    assert (answer.status_code, "read-only" in answer.text) == (403, True)
    assert client.post("/api/c/x/change", headers=basic("ada")).status_code == 403
    assert client.post("/sign-out", data={"csrf": token}).status_code == 303


def test_where_nobody_signs_in_changes_are_protected_all_the_same(make: Make) -> None:
    client, _ = make(AccessSettings())
    assert client.post("/c/x/change").status_code == 403
    answer = client.get("/c/x/see")
    assert "HttpOnly" in answer.headers["set-cookie"]
    token = answer.json()["csrf"]
    assert client.post("/c/x/change", data={"csrf": token}).status_code == 200
    assert "set-cookie" not in client.get("/c/x/see").headers, "it has its cookie"
    other = Browser(client.app)
    other.get("/c/x/see")
    assert other.post("/c/x/change", data={"csrf": token}).status_code == 403
    program = Browser(client.app)
    assert program.post("/api/c/x/change", headers={"X-Ottla-Program": "curl"}).status_code == 200
    evil = {"X-Ottla-Program": "curl", "Origin": "http://evil.example"}
    assert program.post("/api/c/x/change", headers=evil).status_code == 403
    assert client.get("/sign-in").status_code == 404


def test_every_answer_tells_browsers_to_run_nothing_of_others(make: Make) -> None:
    client, _ = make()
    for answer in (client.get("/sign-in"), sign_in(client, "vic"), client.get("/c/x/see")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store"


def test_hostile_sign_ins(make: Make) -> None:
    client, _ = make()
    assert client.post("/sign-in", content=b"name=" + b"x" * 20_000).status_code == 413
    assert client.post("/sign-in", content=b"a=1&" * 100).status_code in {400, 413}
    assert client.post("/sign-in", content=b"\xff\xfe").status_code in {400, 401}
    for next_path in ("//evil", "https://evil", "/\\evil", "/a\r\nSet-Cookie: a=b"):
        answer = sign_in(client, "vic", next=next_path)
        assert answer.headers["location"] == "/"
    page = sign_in(client, '"><script>alert(1)</script>', "x", next='/"><script>')
    assert "<script>" not in page.text
    assert sign_in(client, "vic\r\nX-Evil: 1", "x").status_code == 401
    assert sign_in(client, "vic", "x" * 5_000).status_code == 401
    client.cookies["ottla-session"] = "x" * 5_000
    assert client.get("/api/c/x/see").status_code == 401


def test_the_audit_log_says_who_did_what_from_where(make: Make, tmp_path: Path) -> None:
    client, gate = make()
    sign_in(client, "vic", "wrong")
    sign_in(client, "oscar")
    token = client.get("/c/x/see").json()["csrf"]
    client.post("/c/x/change", data={"csrf": token})
    client.post("/c/x/rule", data={"csrf": token})
    client.post("/c/x/change")
    gate.close()
    text = (tmp_path / "audit.log").read_text()
    assert PASSWORD not in text
    assert token not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["user"], line["action"], line["outcome"]) for line in lines] == [
        ("vic", "sign in", "refused"), ("oscar", "sign in", "done"), ("oscar", "a change", "done"),
        ("oscar", "change", "refused"), ("oscar", "change", "refused"),
    ]  # fmt: skip
    assert lines[2] | {"time": ""} == {
        "time": "", "user": "oscar", "role": "operator", "way": "file", "host": "10.9.8.7", "cluster": "x",
        "action": "a change", "request": "POST /c/x/change", "outcome": "done", "words": "it was done",
    }  # fmt: skip
