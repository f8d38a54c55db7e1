"""Pictures of every page for docs/console/, wide and as narrow as a telephone: with OTTLA_PICTURES=docs/console.

Every page is also read by the audit, with something on it: pipelines that run, letters, backups, moves.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import NARROW, WIDE, Tab
from tests.browser.test_console import AUDIT, AXE_RUN
from tests.browser.world import World

from ottla.testing.waiting import wait_until

FOLDER = os.environ.get("OTTLA_PICTURES")
PATIENCE_MS = 60_000
NARROW_HEIGHT_MAX = 1600
PATHS = {
    "overview": "/", "brokers": "/brokers", "broker": "/brokers/1", "topics": "/topics", "topic-new": "/topics/new",
    "topic": "/topics/clicks", "messages": "/topics/orders/messages?q=%24.amount%3E50",
    "message": "/topics/orders/messages/record?partition=0&offset=0", "produce": "/topics/orders/produce",
    "topic-settings": "/topics/orders/settings?set.retention.ms=86400000", "topic-manage": "/topics/orders/manage",
    "producers": "/topics/payments/producers", "groups": "/groups", "group": "/group?id=live-counts",
    "group-reset": "/group/reset?id=warehouse&to=latest",
    "reassignment": "/reassignment?goal=leave&broker=3&topics=clicks",
    "pipelines": "/pipelines", "dead-letters": "/dead-letters?topic=orders.dead",
    "dead-letter": "/dead-letters/letter?topic=orders.dead&partition=0&offset=1", "schemas": "/schemas",
    "schema": "/schema?subject=orders-value&version=2", "mirroring": "/mirroring", "backups": "/backups",
    "backup-restore": "", "acls": "/acls?who=alice&name=orders", "users": "/users", "quotas": "/quotas",
}  # fmt: skip


def furnish(world: World) -> None:
    """What pages show beside topics and groups."""
    world.start_pipeline()
    site = world.site
    site.do("/acls", principal="alice", permission="allow", operation="Read", resource="topic", name="orders")
    site.do(
        "/acls", principal="bob", permission="deny", operation="Write", resource="topic", name="pay", pattern="prefixed"
    )
    site.do("/users", user="alice", password="a long password")
    site.do("/quotas", user="alice", key="producer_byte_rate", value="1000000")
    if not site.api("/backups")["places"][0]["backups"]:
        site.do("/backups/run", place=world.place, topics="payments|customers")
    wait_until(lambda: site.api("/backups")["places"][0]["backups"], "a backup", seconds=120)
    wait_until(lambda: world.flow("standby.east-west"), "what is known of the mirror", seconds=120)
    dear = '{"id": "dear", "item": "cheese", "amount": 5000}'
    site.do("/topics/orders/produce", key="dear", value=dear, value_form="json")
    wait_until(lambda: world.end_of("orders.dead") > 1, "two dead letters", seconds=120)
    wait_until(lambda: site.api("/groups")["items"][0]["certain"], "enough looks", seconds=180)


@pytest.mark.timeout(900)
@pytest.mark.skipif(not FOLDER, reason="pictures are taken with OTTLA_PICTURES=docs/console")
def test_pictures(browser: Any, world: World, axe: str) -> None:
    furnish(world)
    (backup, *_) = world.site.api("/backups")["places"][0]["backups"]
    restore = f"/backups/restore?place={world.place}&backup={backup['backup']}&prefix=restored."
    found: dict[str, list[str]] = {}
    for suffix, size, scheme in (("", WIDE, "light"), ("-narrow", NARROW, "dark")):
        tab = Tab(browser, world.site, size, scheme)
        for name, path in PATHS.items():
            tab.go(path or restore)
            if name == "messages":
                tab.page.locator("tbody tr").first.wait_for(timeout=PATIENCE_MS)
            tab.is_well()
            shoot(tab, Path(str(FOLDER)) / f"{name}{suffix}.png", size)
            tab.page.evaluate(axe)
            found[f"{name}{suffix}"] = tab.page.evaluate(AUDIT) + tab.page.evaluate(AXE_RUN)
        tab.context.close()
    assert {name: problems for name, problems in found.items() if problems} == {}


def shoot(tab: Tab, path: Path, size: dict[str, int]) -> None:
    """All of a page, if it is not much longer than a screen."""
    height = int(tab.page.evaluate("document.documentElement.scrollHeight"))
    most = NARROW_HEIGHT_MAX if size is NARROW else WIDE["height"] * 2
    tab.page.set_viewport_size({**size, "height": min(max(height, 500), most)})
    tab.page.screenshot(path=path)
    tab.page.set_viewport_size(size)
