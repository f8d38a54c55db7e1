"""The console in a real browser, wide and light, narrow and dark: what the script does, and what it must not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.browser.conftest import Tab
from tests.console.conftest import Site

Unique = Callable[[str], str]

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)><svg/onload=alert(3)>"
PATIENCE_MS = 60_000

# Every image, field and button has a name; ids are used once; headings begin with one h1; the page says its language.
AUDIT = """() => {
  const found = [];
  const named = (e) => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim();
  for (const e of document.querySelectorAll('button, a[href], summary'))
    if (!named(e)) found.push('without a name: ' + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll('input:not([type=hidden]), select, textarea'))
    if (!e.labels.length && !e.getAttribute('aria-label')) found.push('without a label: ' + e.outerHTML.slice(0, 80));
  for (const e of document.querySelectorAll('svg[role=img]')) if (!named(e)) found.push('a chart without words');
  const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
  if (new Set(ids).size !== ids.length) found.push('an id twice');
  if (document.querySelectorAll('h1').length !== 1) found.push('not one h1');
  const root = document.documentElement;
  if (!root.lang || !document.title || !document.querySelector('main')) found.push('no language, title or main');
  for (const e of document.querySelectorAll('table'))
    if (!e.querySelector('th[scope]')) found.push('a table without heads');
  const linear = (v) => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
  const light = (c) => {
    const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(linear);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(c)) return c;
    }
    return 'rgb(255,255,255)';
  };
  for (const e of document.querySelectorAll('p, a, td, th, dt, dd, label, button, h1, h2, summary, .badge')) {
    if (!e.textContent.trim() || !e.offsetParent || e.disabled) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) found.push('too little contrast: ' + e.outerHTML.slice(0, 80));
  }
  return found;
}"""


@pytest.fixture
def topic(console: Site, unique: Unique) -> str:
    name = unique("orders")
    console.do("/topics", name=name, partitions=3)
    console.do(
        f"/topics/{name}/produce",
        key=HOSTILE,
        value=HOSTILE,
        value_form="text",
        headers=f"trace={HOSTILE}",
        partition=0,
    )
    return name


# What axe-core finds that keeps people out, or hinders them much.
AXE_RUN = """async () => {
  document.querySelectorAll('main details').forEach((each) => { each.open = true; });
  return (await axe.run(document, {resultTypes: ['violations']})).violations
    .filter((each) => ['serious', 'critical'].includes(each.impact))
    .map((each) => each.id + ': ' + each.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | '));
}"""


@pytest.fixture
def paths(console: Site, topic: str, unique: Unique) -> list[str]:
    group = unique("group")
    console.do("/group/reset", id=group, topic=topic, to="earliest")
    return [
        "/", "/brokers", "/brokers/1", "/topics", "/topics/new", f"/topics/{topic}", f"/topics/{topic}/messages",
        f"/topics/{topic}/settings?set.retention.ms=1000", f"/topics/{topic}/produce", f"/topics/{topic}/manage",
        f"/topics/{topic}/producers", "/groups", f"/group?id={group}", f"/group/reset?id={group}&to=latest",
        "/reassignment?goal=spread", "/pipelines", "/mirroring", "/backups", "/dead-letters", "/schemas",
        "/acls?who=a&name=b", "/users", "/quotas",
    ]  # fmt: skip


def test_every_page_is_well(tab: Tab, paths: list[str]) -> None:
    for path in paths:
        tab.go(path)
        tab.is_well()
        assert tab.page.evaluate(AUDIT) == [], path


@pytest.mark.timeout(600)
def test_axe_finds_nothing_serious(tab: Tab, paths: list[str], axe: str) -> None:
    found: dict[str, list[str]] = {}
    for path in paths:
        tab.go(path)
        tab.page.evaluate(axe)
        violations = tab.page.evaluate(AXE_RUN)
        if violations:
            found[path] = violations
    assert found == {}


def test_hostile_records_are_text(tab: Tab, console: Site, topic: str) -> None:
    tab.go(f"/topics/{topic}/messages")
    tab.page.get_by_text("that is all").wait_for(timeout=PATIENCE_MS)
    assert "<script>alert(1)</script>" in tab.page.locator("tbody").inner_text()
    assert tab.page.locator("tbody img").count() == 0
    tab.page.locator("tbody a").first.click()
    tab.page.get_by_text("Headers", exact=True).wait_for(timeout=PATIENCE_MS)
    tab.is_well()


def test_a_topic_is_made_written_to_followed_and_deleted(tab: Tab, console: Site, unique: Unique) -> None:
    name, page = unique("made"), tab.page
    tab.go("/topics/new")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Partitions").fill("2")
    page.get_by_role("button", name="Create", exact=True).click()
    page.get_by_text(f"topic {name} is created").wait_for(timeout=PATIENCE_MS)
    tab.go(f"/topics/{name}/messages?tail=1")
    page.get_by_text("0 records came").wait_for(timeout=PATIENCE_MS)
    console.do(f"/topics/{name}/produce", value="seen as it came", value_form="text")
    page.get_by_text("seen as it came").first.wait_for(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("stopped").wait_for(timeout=PATIENCE_MS)
    tab.go(f"/topics/{name}/manage")
    page.locator("form").filter(has_text="Delete the topic").get_by_role("textbox").fill(name)
    page.get_by_role("button", name="Delete the topic").click()
    page.get_by_text(f"topic {name} is deleted").wait_for(timeout=PATIENCE_MS)
    tab.is_well()


def test_a_page_renews_itself_and_hears_keys(tab: Tab, console: Site, topic: str) -> None:
    page = tab.page
    tab.go(f"/topics/{topic}")
    page.get_by_text("live", exact=True).wait_for(timeout=PATIENCE_MS)
    console.do(f"/topics/{topic}/produce", value="x", value_form="text", count=777, partition=1)
    page.get_by_text("777").first.wait_for(timeout=PATIENCE_MS)
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/topics", timeout=PATIENCE_MS)
    page.keyboard.press("/")
    page.keyboard.type(topic)
    page.keyboard.press("Enter")
    page.wait_for_url("**q=*", timeout=PATIENCE_MS)
    assert page.locator("tbody tr").count() == 1
    tab.is_well()


def test_a_schema_is_checked_before_it_is_registered(tab: Tab, unique: Unique) -> None:
    subject, page = unique("subject"), tab.page
    for fields, words in (
        ('[{"name": "id", "type": "int"}]', "is new"),
        ('[{"name": "id", "type": "int"}, {"name": "b", "type": "string"}]', "It does not fit"),
    ):
        tab.go("/schemas")
        page.get_by_label("Subject", exact=True).fill(subject)
        page.get_by_label("Schema").fill(f'{{"type": "record", "name": "R", "fields": {fields}}}')
        page.get_by_role("button", name="Check it").click()
        page.get_by_text(words).wait_for(timeout=PATIENCE_MS)
        button = page.get_by_role("button", name="Register it")
        if "fit" in words:
            assert button.is_disabled()
        else:
            button.click()
            page.get_by_text("is registered with id").wait_for(timeout=PATIENCE_MS)
    tab.is_well()


def test_pages_work_without_the_script(browser: Any, console: Site, topic: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"http://{console._address}/c/here/topics/{topic}/messages?plain=1")
    assert "<script>alert(1)</script>" in page.locator("tbody").inner_text()
    context.close()
