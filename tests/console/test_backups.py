"""Backups of a place: what the command tells, for those who may see it; taken, checked and restored from there."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from ottla.config.properties import parse_properties
from ottla.console.access.gate import AccessSettings
from ottla.console.access.roles import Role
from ottla.console.asking import Right
from ottla.console.pages.backups import SHOWN_MAX, place_row, progress_words
from ottla.console.starting import client_file
from ottla.console.tools import NOTHING_YET, Told
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

from .conftest import Open, Site
from .test_pages import check


def places(site: Site) -> list[Any]:
    found = site.api("/backups")["places"]
    return found if all(each["known"] for each in found) else []


def finished(site: Site, what: str) -> str:
    """What the job said that was started in the first place, when it has come to its end."""
    wait_until(lambda: (job := job_of(site)) is not None and not job["running"], f"the end of {what}", seconds=120)
    job = job_of(site)
    assert job is not None
    assert (job["what"], job["good"]) == (what, True), job
    return str(job["words"])


def job_of(site: Site) -> dict[str, Any] | None:
    found: dict[str, Any] | None = site.api("/backups")["places"][0]["job"]
    return found


@pytest.mark.timeout(300)
def test_a_backup_is_taken_checked_and_restored(
    open_console: Open, ottla_broker: RunningBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, place, empty = unique("kept"), str(tmp_path / "place"), str(tmp_path / "no such place")
    told = {"backups": (place, empty), "state_dir": str(tmp_path / "state")}
    site = open_console(**told)
    site.do("/topics", name=topic, partitions=1)
    site.do(f"/topics/{topic}/produce", value="1", value_form="text", count=5)
    assert site.submit("/backups/run", {"place": place, "topics": topic}, on="/backups").status == 303
    assert finished(site, "a backup").startswith("5 records")

    first, second = wait_until(lambda: with_backups(site), "what the commands say", seconds=120)
    (backup,) = first["backups"]
    assert (backup["topics"], backup["records"], backup["full"], backup["here"]) == ([topic], 5, True, True)
    assert second["backups"] == []
    page, name = site.page("/backups"), backup["backup"]
    check(page)
    assert f"ottla backup verify {place} {name}" in page.text
    restore = f"ottla backup restore --bootstrap-server {ottla_broker.bootstrap} {place} --backup {name}"
    assert f"{restore} --dry-run" in page.text
    limited = open_console(AccessSettings(open_role=Role("some", Right.OPERATOR, ("mine*",), ())), **told)
    seen, _ = wait_until(lambda: with_backups(limited), "what the command says", seconds=120)
    assert seen["backups"][0]["topics"] == []
    assert limited.submit("/backups/run", {"place": place}, on="/topics/new").status == 403

    chosen = {"place": place, "backup": name}
    assert site.submit("/backups/verify", chosen, on="/backups").status == 303
    assert "problems" not in finished(site, f"the check of {name}")
    as_it_is = site.page(f"/backups/restore?{urlencode(chosen)}")
    check(as_it_is)
    assert "with records" in as_it_is.text
    preview = site.page(f"/backups/restore?{urlencode({**chosen, 'prefix': 'again.'})}")
    check(preview)
    assert f"again.{topic}" in preview.text
    assert f"{restore} --prefix again." in preview.text
    form = {**chosen, "prefix": "again."}
    assert site.submit("/backups/restore", {**form, "confirm": "yes"}, on="/topics/new").status == 400
    assert site.submit("/backups/restore", {**form, "confirm": name}, on="/topics/new").status == 303
    assert finished(site, f"the restore of {name}").startswith("5 records")
    # What the console shows of a topic is as old as its last look.
    ends = f"/topics/again.{topic}"
    wait_until(lambda: site.api(ends)["topic"]["end_offsets"] == 5, "the restored records are seen", seconds=60)


def with_backups(site: Site) -> list[Any]:
    found = places(site)
    return found if found and found[0]["backups"] else []


def test_only_places_that_it_was_told_of(open_console: Open, tmp_path: Path) -> None:
    site = open_console(backups=(str(tmp_path),), state_dir=str(tmp_path / "state"))
    for path, more in (("run", {}), ("verify", {"backup": "b"}), ("restore", {"backup": "b", "confirm": "b"})):
        elsewhere = site.submit(f"/backups/{path}", {"place": "/etc", **more}, on="/topics/new")
        assert (elsewhere.status, "not told of /etc" in elsewhere.text) == (400, True)
    odd = site.submit("/backups/verify", {"place": str(tmp_path), "backup": "--master=x"}, on="/topics/new")
    assert odd.status == 400


def test_how_far_a_job_is() -> None:
    progress = {"event": "progress", "what": "records", "bytes": 50, "of": 200, "records": 1234}
    words = progress_words({**progress, "bytes_per_second": 2_500_000, "seconds_left": 7})
    assert words == "records: 25 %, 1,234 records, 2.5 MB a second, 7 s left"
    done = {"event": "done", "records": 5, "seconds": 0.5, "problems": ["an object is gone", "another"]}
    assert progress_words(done) == "5 records in 0.5 s; 2 problems: an object is gone"
    assert progress_words({}) == ""


def test_settings_of_a_client_are_handed_over_in_a_pipe() -> None:
    client = {"sasl.jaas.config": 'x required username="a" password="p\\\\=#";', "security.protocol": "SASL_SSL"}
    with client_file(client) as (arguments, pipes):
        assert arguments == ["--command-config", f"/dev/fd/{pipes[0]}"]
        with open(arguments[1], encoding="utf-8") as file:
            assert parse_properties(file.read()) == client
    with client_file(None) as nothing:
        assert nothing == ([], ())


def test_places_with_many_backups_and_places_that_do_not_answer() -> None:
    many = [{"backup": f"b{each}", "taken_ms": each} for each in range(200)]
    found = place_row("p", Told(time.monotonic(), {"backups": many, "unfinished": ["b9"]}, ""), "c", bool)
    assert (found.total, len(found.backups), found.backups[0].backup) == (200, SHOWN_MAX, "b199")
    assert found.unfinished == ("b9",)
    assert not place_row("p", NOTHING_YET, "c", bool).known
    assert place_row("p", Told(time.monotonic(), None, "no such bucket"), "c", bool).error == "no such bucket"
