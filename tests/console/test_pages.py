"""Every page and every JSON answer over a real broker: there, small, and free of anything that could run."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from ottla.cli.names import COMMANDS
from ottla.console.access.gate import AccessSettings
from ottla.console.access.roles import BUILT_IN, Role
from ottla.console.asking import Right
from ottla.console.routes import ENTRIES

from .conftest import CLUSTER, Open, Page, Site

Unique = Callable[[str], str]

BYTES_MAX = 200_000
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>{{7*7}}\u202e\x07"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Read(HTMLParser):
    """What a browser would make of a page: what could run in it is noted, and tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.odd: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script":
            self.scripts.append(dict(attrs).get("src") or "inline")
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.odd.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.odd.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction") and (value or "").lower().startswith(
                ("javascript:", "data:", "//")
            ):
                self.odd.append(f"{tag} {name}={value}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        while (
            self.open and self.open[-1] != tag and self.open[-1] in ("p", "li", "dt", "dd", "tr", "td", "th", "option")
        ):
            self.open.pop()
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> where <{self.open[-1]}> is open"
        self.open.pop()


def check(page: Page) -> None:
    assert page.status == 200, (page.status, page.text[-2000:])
    assert len(page.body) < BYTES_MAX
    assert "script-src 'self'" in page.headers["content-security-policy"]
    read = Read(page.text)
    assert read.scripts == ["/static/console.js"]
    assert not read.odd
    assert not read.open


@pytest.fixture
def topic(site: Site, unique: Unique) -> str:
    name = unique("orders")
    site.do("/topics", name=name, partitions=3)
    return name


def sample(path: str, topic: str, group: str, letters: str) -> str:
    """An address for an entry of the table that there is something to see at."""
    filled = path.replace("{topic}", topic).replace("{broker}", "1")
    query = {
        "/group": f"id={group}",
        "/group/reset": f"id={group}&to=earliest",
        "/topics/{topic}/messages": "plain=1",
        "/topics/{topic}/messages/record": "partition=0&offset=0",
        "/topics/{topic}/settings": "set.retention.ms=1000",
        "/dead-letters": f"topic={letters}",
        "/dead-letters/letter": f"topic={letters}&partition=0&offset=0",
        "/reassignment": "goal=spread",
        "/acls": "who=alice&name=orders",
    }.get(path, "")
    return f"{filled}?{query}" if query else filled


def fill(site: Site, topic: str, group: str, letters: str, text: str) -> None:
    """Records, a group with offsets and a dead letter, all with this text wherever one can be."""
    site.do(
        f"/topics/{topic}/produce",
        key=text,
        value=f'{{"a": {len(text)}, "{len(text)}": "x"}}',
        value_form="json",
        partition=0,
    )
    site.do(
        f"/topics/{topic}/produce",
        key=text,
        value=text,
        value_form="text",
        headers=f"{text.replace('=', '')}={text}",
        partition=0,
    )
    site.do("/group/reset", id=group, topic=topic, to="earliest")
    site.do("/topics", name=letters, partitions=1)
    why = f"ottla.error.topic={topic}\nottla.error.step={text}\nottla.error.message={text}\nottla.error.partition=0"
    site.do(f"/topics/{letters}/produce", key=text, value=text, value_form="text", headers=why)


ELSEWHERE = {"/schema", "/backups/restore"}
"""What needs a registry, or a place with a backup in it, is tried in test_schemas.py and test_backups.py."""


@pytest.mark.parametrize("text", ["plain words", HOSTILE], ids=["plain", "hostile"])
def test_every_page_and_answer(site: Site, topic: str, unique: Unique, text: str) -> None:
    group, letters = f"{unique('group')} {text.replace('&', '')}", unique("dead-letters")
    fill(site, topic, group, letters, text)
    from urllib.parse import quote

    for entry in ENTRIES:
        if entry.method != "GET" or entry.raw or entry.path in ELSEWHERE:
            continue
        path = sample(entry.path, topic, quote(group), letters)
        check(site.page(path))
        assert isinstance(site.api(path.replace("plain=1", "")), dict), path
    shown = site.page(f"/topics/{topic}/messages/record?partition=0&offset=1").text
    assert "alert(1)" not in shown or "&lt;script&gt;alert(1)" in shown


def test_a_search_as_a_stream_is_escaped_too(site: Site, topic: str) -> None:
    site.do(f"/topics/{topic}/produce", key=HOSTILE, value=HOSTILE, value_form="text")
    stream = site.page(f"/topics/{topic}/messages/stream?q=alert").text
    assert "event: hits" in stream
    assert "event: done" in stream
    assert "<script>" not in stream.replace("\\u003c", "<")


def test_values_that_are_hard_to_show(site: Site, topic: str) -> None:
    deep = "[" * 20_000 + "]" * 20_000
    for form, value in (
        ("hex", "fffe00c328"),
        ("text", deep),
        ("text", "x" * 1_000_000),
        ("null", ""),
        ("text", "\ud7ff"),
    ):
        site.do(f"/topics/{topic}/produce", value=value, value_form=form, partition=0)
    check(site.page(f"/topics/{topic}/messages?plain=1"))
    for offset in range(5):
        page = site.page(f"/topics/{topic}/messages/record?partition=0&offset={offset}")
        assert page.status == 200
        assert Read(page.text).scripts == ["/static/console.js"]


def test_pages_stay_small_whatever_is_in_them(site: Site, topic: str, unique: Unique) -> None:
    letters = unique("dead-letters")
    site.do("/topics", name=letters, partitions=1)
    large = "<&" * 250
    why = "\n".join([f"h{number}={large}" for number in range(20)] + [f"ottla.error.message={large}"])
    for name in (topic, letters):
        site.do(
            f"/topics/{name}/produce", key=large, value=large, value_form="text", headers=why, count=60, partition=0
        )
    check(site.page(f"/topics/{topic}/messages?plain=1"))
    check(site.page(f"/dead-letters?topic={letters}"))
    check(site.page("/brokers/1?all=1"))


def test_errors_are_pages_for_browsers_and_json_for_programs(site: Site) -> None:
    page = site.page("/topics/no-such-topic")
    assert page.status == 404
    assert "there is no topic no-such-topic" in page.text
    answer = site.send("GET", f"/api/c/{CLUSTER}/topics/no-such-topic")
    assert (answer.status, answer.json()) == (404, {"error": "there is no topic no-such-topic"})
    assert site.send("GET", "/c/elsewhere/").status == 404
    assert site.page("/%3Cscript%3E").status == 404


def changing() -> list[Any]:
    return [entry for entry in ENTRIES if entry.changes or entry.right > Right.VIEWER]


def test_a_viewer_changes_nothing_whatever_is_asked(open_console: Open, site: Site, topic: str) -> None:
    viewer = open_console(AccessSettings(open_role=BUILT_IN["viewer"]))
    assert viewer.page("/topics").status == 200
    assert len(changing()) > 25
    for entry in changing():
        path = sample(entry.path, topic, "g", "l")
        for address in (f"/c/{CLUSTER}{path}", f"/api/c/{CLUSTER}{path}"):
            for headers in ({}, {"X-Ottla-Program": "x", "Content-Type": "application/json"}):
                page = viewer.send(entry.method, address, b"{}" if entry.method == "POST" else b"", headers)
                assert page.status in (403, 404), (entry.path, page.status)
                if page.status == 404:  # no page of its own: it is part of another
                    assert entry.template is None
    assert site.api(f"/topics/{topic}")["topic"]["partitions"] == 3


def test_no_change_without_a_token_or_from_another_site(site: Site, topic: str) -> None:
    token = site.page("/topics/new").csrf
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for entry in ENTRIES:
        if not entry.changes:
            continue
        path = f"/c/{CLUSTER}{sample(entry.path, topic, 'g', 'l').partition('?')[0]}"
        assert site.send("POST", path, b"", form).status == 403, entry.path
        evil = {**form, "Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert site.send("POST", path, f"csrf={token}".encode(), evil).status == 403, entry.path
        assert site.send("POST", f"/api{path}", b"{}", {"Content-Type": "text/plain"}).status == 403, entry.path
    assert site.send("GET", f"/c/{CLUSTER}/topics", headers={"Host": "evil.example"}).status == 421


def test_a_role_with_some_topics_sees_no_others(open_console: Open, site: Site, unique: Unique) -> None:
    mine, other, group = unique("mine"), unique("other"), unique("readers")
    for name in (mine, other):
        site.do("/topics", name=name, partitions=1)
        site.do(f"/topics/{name}/produce", value='{"a": 1, "ssn": "123"}', value_form="json")
        site.do("/group/reset", id=group, topic=name, to="earliest")
    role = Role("some", Right.OPERATOR, ("mine*",), (("mine*", ("ssn",)),))
    limited = open_console(AccessSettings(open_role=role))
    names = [row["name"] for row in limited.api("/topics?per_page=500")["items"]]
    assert mine in names
    assert other not in names
    assert limited.page(f"/topics/{other}").status == 404
    assert limited.page(f"/topics/{other}/messages?plain=1").status == 404
    assert {row["topic"] for row in limited.api(f"/group?id={group}")["items"]} == {mine}
    assert limited.page(f"/dead-letters?topic={other}").status == 404
    record = limited.api(f"/topics/{mine}/messages")["items"][0]
    assert record["value"]["document"] == {"a": 1, "ssn": "•••"}
    assert "123" not in limited.page(f"/topics/{mine}/messages/record?partition=0&offset=0").text
    assert "123" not in limited.page(f"/topics/{mine}/messages/export?format=csv").text
    assert limited.send("GET", f"/api/c/{CLUSTER}/topics/{mine}/messages?q=123").status in (400, 403, 409)
    assert limited.page(f"/topics/{mine}/produce?partition=0&offset=0").status == 400


def test_the_api_is_described(site: Site) -> None:
    described = site.send("GET", "/api/openapi.json").json()
    served = {(entry.method.lower(), f"/api/c/{{cluster}}{entry.path}") for entry in ENTRIES if not entry.raw}
    assert served == {(method, path) for path, each in described["paths"].items() for method in each}
    names = [each["operationId"] for path in described["paths"].values() for each in path.values()]
    assert len(names) == len(set(names))


def test_the_command_lines_name_commands_that_there_are(site: Site, topic: str, unique: Unique) -> None:
    group, letters = unique("group"), unique("dead-letters")
    fill(site, topic, group, letters, "x")
    known = {name for command in COMMANDS for name in (command.name, command.script) if name}
    seen = 0
    for entry in ENTRIES:
        if entry.method != "GET" or entry.raw or entry.path in ELSEWHERE:
            continue
        page = site.page(sample(entry.path, topic, group, letters)).text
        for line in re.findall(r"command line</summary><pre><code>([^<]*)</code>", page):
            tool, *rest = line.split()
            seen += 1
            assert (rest[0] if tool == "ottla" else tool.removesuffix(".sh")) in known, line
    assert seen > 20
