"""The lines that `ottla monitor` writes to a log."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.cli.monitor.display import TextLines
from ottla.monitoring.lag.book import GroupLag
from ottla.monitoring.lag.rules import Status


def group(status: Status) -> GroupLag:
    return GroupLag("g", status, 1.0, (), None, 1_200, "Stable", 1)


def test_a_group_is_told_when_it_was_the_same_at_two_looks(capsys: pytest.CaptureFixture[str]) -> None:
    lines = TextLines()
    watch = SimpleNamespace(settings=SimpleNamespace(name="c"), judged=())
    monitor = cast("Any", SimpleNamespace(watches=[watch], ends=[]))
    told = []
    for status in (Status.ERR, Status.WARN, Status.OK, Status.ERR, Status.ERR, Status.ERR, Status.OK, Status.OK):
        watch.judged = (group(status),)
        for _ in range(3):  # it is shown more often than it is looked at
            lines.show(monitor)
        told.append(capsys.readouterr().out)
    assert told == ["", "", "", "", "c: group g is ERR, 1,200 unread\n", "", "", "c: group g is OK, 1,200 unread\n"]
