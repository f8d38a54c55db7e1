"""What people do with a console, from the first click to what then is so: in a real browser, on three real brokers,
with pipelines and mirrors on real Spark.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import WIDE, Tab
from tests.browser.world import BAD_AMOUNT, World
from tests.console.conftest import CLUSTER, Running, Site

from ottla.console.access.gate import AccessSettings
from ottla.console.access.passwords import hash_password
from ottla.console.access.users import parse_access
from ottla.testing.waiting import wait_until

pytestmark = pytest.mark.timeout(600)
Unique = Callable[[str], str]
PATIENCE_MS = 60_000
PASSWORD = "correct horse"


def said(tab: Tab, words: str) -> None:
    """What the console says at the top of a page after something was done."""
    tab.page.locator(".said").get_by_text(words).wait_for(timeout=PATIENCE_MS)


def confirm(tab: Tab, summary: str, name: str, button: str) -> None:
    """A dangerous thing: unfolded, its name typed, done."""
    box = tab.page.locator("details").filter(has=tab.page.locator("summary", has_text=summary))
    box.locator("summary", has_text=summary).first.click()
    box.locator('input[name="confirm"]').fill(name)
    box.get_by_role("button", name=button, exact=True).click()


def table(tab: Tab) -> Any:
    return tab.page.locator("main table").first


def test_settings_are_compared_before_they_are_saved(wide: Tab, world: World, unique: Unique) -> None:
    name, page = unique("set"), wide.page
    world.site.do("/topics", name=name, partitions=2)
    wide.go(f"/topics/{name}/settings")
    page.get_by_label("retention.ms", exact=True).fill("120000")
    page.get_by_role("button", name="Show what would change").click()
    page.get_by_text("+ 120000").wait_for(timeout=PATIENCE_MS)
    assert "--add-config" in page.locator("details.command").first.inner_text() or page.get_by_text("Save 1").count()
    page.get_by_role("button", name="Save 1 change").click()
    said(wide, "retention.ms=120000")
    wide.go(f"/topics/{name}/manage")
    page.get_by_label("Partitions").fill("4")
    page.get_by_role("button", name="Grow").click()
    said(wide, "4")
    assert world.site.api(f"/topics/{name}")["topic"]["partitions"] == 4
    world.site.do(f"/topics/{name}/produce", value="x", value_form="text", partition=1, count=10)
    wide.go(f"/topics/{name}/manage")
    form = page.locator("form").filter(has_text="Below offset")
    form.get_by_label("Partition").fill("1")
    form.get_by_label("Below offset").fill("4")
    form.locator('input[name="confirm"]').fill(name)
    page.get_by_role("button", name="Delete records").click()
    said(wide, "delete")
    assert world.site.api(f"/topics/{name}")["partitions"][1]["start"] == 4
    wide.is_well()


def test_records_are_found_shown_produced_again_and_exported(wide: Tab, world: World, tmp_path: Path) -> None:
    page = wide.page
    wide.go("/topics/payments/messages")
    page.get_by_role("searchbox").fill("$.payment>=1990 header.trace:p-199")
    page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_text("that is all").wait_for(timeout=PATIENCE_MS)
    assert "q=" in page.url
    assert page.locator("tbody tr").count() == 10
    assert "2,000 records looked at" in page.locator("#counts").inner_text()
    for form in ("jsonl", "csv"):
        with page.expect_download(timeout=PATIENCE_MS) as started:
            page.get_by_role("link", name=form, exact=True).click()
        path = tmp_path / form
        started.value.save_as(path)
        lines = path.read_text().splitlines()
        rows = [json.loads(line) for line in lines] if form == "jsonl" else list(csv.DictReader(lines))
        assert len(rows) == 10
    page.locator("tbody a").first.click()
    page.get_by_role("link", name="Produce again").click()
    page.locator('textarea[name="key"]').fill("again")
    before = world.end_of("payments")
    page.get_by_role("button", name="Produce", exact=True).click()
    page.get_by_text("again").first.wait_for(timeout=PATIENCE_MS)
    assert world.end_of("payments") == before + 1
    wide.is_well()


def test_offsets_are_set_after_a_look_and_put_back(wide: Tab, world: World) -> None:
    page = wide.page
    wide.go("/groups?q=warehouse")
    page.get_by_role("link", name="warehouse").first.click()
    page.locator('select[name="to"]').select_option("latest")
    page.get_by_role("button", name="Show what would happen").click()
    page.get_by_text("Nothing has been changed yet").wait_for(timeout=PATIENCE_MS)
    assert "--to-latest" in page.locator("details.command").text_content()
    page.get_by_role("button", name="Set 12 offsets").click()
    said(wide, "12 offsets of group warehouse were set")
    page.get_by_role("button", name="Undo that reset").click()
    said(wide, "as they were before")
    items = world.site.api("/group?id=warehouse")["items"]
    assert [each["committed"] for each in items] == [0] * 12
    wide.is_well()


def test_partitions_are_moved_with_a_throttle_and_given_up(wide: Tab, world: World, unique: Unique) -> None:
    name, page = unique("moved"), wide.page
    world.site.do("/topics", name=name, partitions=3, replication=1)
    for number in range(36):  # more than one fetch brings, which is not held back
        world.site.do(f"/topics/{name}/produce", value="x" * 200_000, value_form="text", partition=number % 3, count=5)
    wide.go("/reassignment")
    page.locator('select[name="goal"]').select_option("factor")
    page.locator('input[name="factor"]').fill("2")
    page.locator('input[name="topics"]:visible').fill(name)
    page.locator('input[name="throttle"]').fill("1000")
    page.get_by_role("button", name="Show the plan").click()
    page.get_by_text("Nothing has been moved yet").wait_for(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Move 3 partitions").click()
    said(wide, "3 partitions are moving")
    page.get_by_text(f"{name}-0").first.wait_for(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Give up all moves").click()
    said(wide, "moves are given up")
    page.get_by_role("button", name="Take throttles away").click()
    said(wide, "the throttles are taken away")
    assert world.site.api(f"/topics/{name}")["topic"]["replication"] == 1
    wide.go(f"/reassignment?goal=factor&factor=2&topics={name}")
    page.get_by_role("button", name="Move 3 partitions").click()
    said(wide, "3 partitions are moving")
    wait_until(lambda: not world.site.api("/reassignment")["moving"], "the moves to end", seconds=120)
    assert world.site.api(f"/topics/{name}")["topic"]["replication"] == 2
    wide.is_well()


def test_rules_users_and_quotas(wide: Tab, world: World, unique: Unique) -> None:
    user, page = unique("alice"), wide.page
    wide.go("/acls")
    form = page.locator("form").filter(has_text="The name is")
    form.locator('input[name="principal"]').fill(user)
    form.locator('select[name="operation"]').select_option("Read")
    form.locator('input[name="name"]').fill("orders")
    form.get_by_role("button", name="Add").click()
    said(wide, f"{user} may")
    wide.go(f"/acls?who={user}&name=orders")
    verdicts = table(wide)
    assert "ALLOW" in verdicts.locator("tr", has_text="READ").first.inner_text().upper()
    assert "DENY" in verdicts.locator("tr", has_text="WRITE").first.inner_text().upper()
    wide.go("/users")
    page.locator('input[name="user"]:visible').fill(user)
    page.get_by_label("Password").fill("a long password")
    page.get_by_role("button", name="Set").click()
    said(wide, f"user {user} can log in")
    confirm(wide, "Remove", user, "Remove")
    said(wide, f"user {user} cannot log in any more")
    wide.go("/quotas")
    page.locator('input[name="user"]:visible').fill(user)
    page.locator('input[name="value"]:visible').fill("1000000")
    page.get_by_role("button", name="Set", exact=True).click()
    said(wide, "producer_byte_rate")
    page.get_by_text(f"user {user}: at most").wait_for(timeout=PATIENCE_MS)
    wide.is_well()


def test_a_pipeline_on_spark_and_its_dead_letters(wide: Tab, world: World) -> None:
    page = wide.page
    wide.go("/pipelines")
    confirm(wide, "Start orders.yaml", "orders.yaml", "Start")
    said(wide, "orders.yaml is started in process")
    world.wait_for_pipeline()
    page.reload()
    page.get_by_role("heading", name="big-orders").wait_for(timeout=PATIENCE_MS)
    wait_until(lambda: world.end_of("orders.dead") > 0, "the dead letter", seconds=120)
    before = world.end_of("orders.gross")
    wide.go("/dead-letters?topic=orders.dead")
    page.get_by_text("By error").wait_for(timeout=PATIENCE_MS)
    page.locator("tr.record a").first.click()
    value = page.locator('textarea[name="value"]')
    assert str(BAD_AMOUNT) in value.input_value()
    value.fill(value.input_value().replace(str(BAD_AMOUNT), "5"))
    page.get_by_role("button", name="Send back to orders").click()
    said(wide, "1 letter sent back to orders")
    page.get_by_text("sent", exact=True).first.wait_for(timeout=PATIENCE_MS)
    wait_until(lambda: world.end_of("orders.gross") > before, "the mended order to come out", seconds=120)
    found = world.site.api("/topics/orders.gross/messages?q=key%3Dodd")
    assert [json.loads(each["value"]["text"])["gross"] for each in found["items"]] == [6.0]
    wide.go("/pipelines")
    wait_until(
        lambda: [each["state"] for each in world.site.api("/pipelines")["drivers"][0]["pipelines"]] == ["running"],
        "its driver to say that it runs",
        seconds=60,
    )
    page.reload()
    text = page.locator("main").inner_text()
    assert "orders.gross" in text
    assert "Where a batch spends its time" in text
    wide.is_well()


def test_a_backup_is_taken_checked_and_restored(wide: Tab, world: World) -> None:
    page = wide.page
    wide.go("/backups")
    page.get_by_label("Topics whose whole name matches").fill("payments|customers")
    page.get_by_role("button", name="Take a backup").click()
    page.get_by_text("a backup").first.wait_for(timeout=PATIENCE_MS)
    page.get_by_text("came to its end").wait_for(timeout=PATIENCE_MS)  # the page renews itself
    backup = wait_until(lambda: world.site.api("/backups")["places"][0]["backups"], "the backup", seconds=120)[0]
    name = backup["backup"]
    page.reload()
    page.locator("summary", has_text=name).click()
    page.get_by_role("button", name="Check it").click()
    page.get_by_text(f"the check of {name}").first.wait_for(timeout=PATIENCE_MS)
    page.get_by_text("came to its end").wait_for(timeout=PATIENCE_MS)
    page.locator("summary", has_text=name).click()
    page.get_by_role("link", name="Restore it").click()
    page.get_by_label("Before their names").fill("restored.")
    page.get_by_role("button", name="Show what would happen").click()
    page.get_by_text("restored.payments").wait_for(timeout=PATIENCE_MS)
    page.locator('input[name="confirm"]').fill(name)
    page.get_by_role("button", name="Restore", exact=True).click()
    page.get_by_text(f"the restore of {name}").first.wait_for(timeout=PATIENCE_MS)
    wait_until(lambda: world.end_of("restored.payments") >= 2000, "the records", seconds=120)
    wide.is_well()


def test_a_standby_is_kept_promoted_and_failed_back(wide: Tab, world: World) -> None:
    page, flow = wide.page, "standby.east-west"
    wait_until(lambda: world.flow(flow), "what is known of the mirror", seconds=120)
    wide.go("/mirroring")
    confirm(wide, "Start mirror.yaml", "mirror.yaml", "Start")
    said(wide, "mirror.yaml is started in process")
    world.wait_for_mirror(flow)
    page.reload()
    confirm(wide, f"Stop {flow}", flow, "Stop")
    said(wide, "ends after the batch that runs")
    world.stop_mirrors()
    wait_until(lambda: world.flow(flow), "what is known of the mirror", seconds=120)
    wide.go("/mirroring")
    confirm(wide, f"Promote {flow}", flow, "Promote")
    said(wide, f"{flow} is promoted: payments; 0 records were not replicated")
    wait_until(lambda: world.flow(flow), "what is known of the mirror", seconds=120)
    wide.go("/mirroring")
    confirm(wide, f"Fail back {flow}", flow, "Fail back")
    said(wide, f"{flow} is turned round: payments will be copied back by mirror-back.yaml")
    wait_until(lambda: world.flow("standby.west-east"), "the flow back", seconds=120)
    world.site.do("/mirroring/start", file="mirror-back.yaml", confirm="mirror-back.yaml")
    world.wait_for_mirror("standby.west-east")
    assert world.end_of("payments") >= 2000
    wide.go("/mirroring")
    page.get_by_text("standby.west-east").first.wait_for(timeout=PATIENCE_MS)
    wide.is_well()


def test_who_signs_in_as_a_viewer_finds_nothing_to_change(browser: Any, world: World) -> None:
    access = parse_access({"users": {"vic": {"password": hash_password(PASSWORD), "role": "viewer"}}})
    running = Running(world.settings, AccessSettings(access))
    try:
        tab = Tab(browser, Site(running.url), WIDE, "light")
        page = tab.page
        tab.go("/topics")
        page.get_by_label("Name").fill("vic")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("heading", name="Topics").wait_for(timeout=PATIENCE_MS)
        for path in (
            "/topics",
            "/topics/orders",
            "/group?id=warehouse",
            "/pipelines",
            "/mirroring",
            "/backups",
            "/acls",
        ):
            tab.go(path)
            assert page.locator("main form[method=post]").count() == 0, path
        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("button", name="Sign in").wait_for(timeout=PATIENCE_MS)
        tab.go(f"/c/{CLUSTER}/topics".removeprefix(f"/c/{CLUSTER}"))
        page.get_by_role("button", name="Sign in").wait_for(timeout=PATIENCE_MS)
        tab.is_well()
        tab.context.close()
    finally:
        running.stop()
