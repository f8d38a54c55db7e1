"""Ports of the testing kit: what one process was given, no other gets, opened or not."""

import subprocess
import sys

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


def test_a_port_is_given_to_one_process_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_FIRST", FIRST)
    monkeypatch.setattr(ports, "_LAST", LAST)
    monkeypatch.setattr(ports, "_given", set[int]())
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
