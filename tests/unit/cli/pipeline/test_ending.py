"""Signals that ask a command for its end."""

import signal
import threading
from typing import Any

import pytest

from ottla.cli.pipeline.options import ending_in_order

PATIENCE_SECONDS = 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_never_waits_for_what_it_interrupts(number: signal.Signals) -> None:
    """The main thread has locked the event, as it does for a moment whenever it begins to wait for it."""
    before = signal.getsignal(number)
    ending = threading.Event()
    with ending_in_order(ending.set):
        inside: Any = ending
        with inside._cond:
            signal.raise_signal(number)
        assert ending.wait(PATIENCE_SECONDS)
    assert signal.getsignal(number) is before


def test_each_signal_asks_once_more() -> None:
    asked = threading.Semaphore(0)
    with ending_in_order(asked.release):
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
            assert asked.acquire(timeout=PATIENCE_SECONDS)
    assert not asked.acquire(blocking=False)
