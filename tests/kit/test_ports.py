"""Ports of the testing kit: what one process was given, no other gets, opened or not."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import ports

FIRST, LAST = 14_900, 14_920
"""Where no other test looks."""
HOLDING = f"""
from ottla.testing import ports
ports._FIRST, ports._LAST = {FIRST}, {LAST}
print(*ports.free_ports(15), flush=True)
input()
"""


@pytest.fixture
def few_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With reservations of their own: these tests may run twice on one machine at the same time."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # for the other process
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ports, "_FIRST", FIRST)
    monkeypatch.setattr(ports, "_LAST", LAST)
    monkeypatch.setattr(ports, "_given", set[int]())
    reservations = ports._reservations.__wrapped__()
    monkeypatch.setattr(ports, "_reservations", lambda: reservations)
    yield
    os.close(reservations)


@pytest.mark.usefixtures("few_ports")
def test_a_port_is_given_to_one_process_until_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        theirs = {int(port) for port in holder.stdout.readline().split()}
        assert len(theirs) == 15
        ours = set(ports.free_ports(3))
        assert not ours & theirs
        with pytest.raises(AssertionError, match="not so many free ports"):
            ports.free_ports(3)
        holder.kill()
    assert set(ports.free_ports(5)) <= theirs, "those of a process that was killed are free again"
