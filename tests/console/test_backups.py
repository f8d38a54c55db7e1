"""Backups of a place: what the command tells, for those who may see it, with the command lines to use one."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.console.access.gate import AccessSettings
from ottla.console.access.roles import Role
from ottla.console.asking import Right
from ottla.console.pages.backups import SHOWN_MAX, place_row
from ottla.console.tools import NOTHING_YET, Told
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

from .conftest import Open, Site
from .test_pages import check

MAIN = "import sys; from ottla.cli.main import main; sys.exit(main())"


def places(site: Site) -> list[Any]:
    found = site.api("/backups")["places"]
    return found if all(each["known"] for each in found) else []


@pytest.mark.timeout(300)
def test_backups_are_listed_with_what_can_be_done_with_them(
    open_console: Open, ottla_broker: RunningBroker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, place, empty = unique("kept"), str(tmp_path / "place"), str(tmp_path / "no such place")
    site = open_console(backups=(place, empty))
    site.do("/topics", name=topic, partitions=1)
    site.do(f"/topics/{topic}/produce", value="1", value_form="text", count=5)
    take = ["backup", "run", place, "--topics", topic, "--bootstrap-server", ottla_broker.bootstrap]
    subprocess.run([sys.executable, "-c", MAIN, *take], check=True, capture_output=True, timeout=120)

    first, second = wait_until(lambda: places(site), "what the commands say", seconds=120)
    (backup,) = first["backups"]
    assert (backup["topics"], backup["records"], backup["full"], backup["here"]) == ([topic], 5, True, True)
    assert second["backups"] == []
    page = site.page("/backups")
    check(page)
    assert f"ottla backup verify {place} {backup['backup']}" in page.text
    restore = f"ottla backup restore --bootstrap-server {ottla_broker.bootstrap} {place} --backup {backup['backup']}"
    assert f"{restore} --dry-run" in page.text

    limited = open_console(AccessSettings(open_role=Role("some", Right.VIEWER, ("mine*",), ())), backups=(place,))
    (seen,) = wait_until(lambda: places(limited), "what the command says", seconds=120)
    assert seen["backups"][0]["topics"] == []


def test_places_with_many_backups_and_places_that_do_not_answer() -> None:
    many = [{"backup": f"b{each}", "taken_ms": each} for each in range(200)]
    found = place_row("p", Told(time.monotonic(), {"backups": many, "unfinished": ["b9"]}, ""), "c", bool)
    assert (found.total, len(found.backups), found.backups[0].backup) == (200, SHOWN_MAX, "b199")
    assert found.unfinished == ("b9",)
    assert not place_row("p", NOTHING_YET, "c", bool).known
    assert place_row("p", Told(time.monotonic(), None, "no such bucket"), "c", bool).error == "no such bucket"
