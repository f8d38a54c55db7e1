"""Waiting for a condition instead of for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS = 0.01


def wait_until(condition: Callable[[], T], what: str, *, seconds: float = 60.0, pause: float = PAUSE_SECONDS) -> T:
    """Ask until the answer is true, and return it; AssertionError names `what` did not come about.

    `pause` is how long to wait before asking again: longer where the question costs the brokers something.
    """
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}; last seen: {answer!r}")
        time.sleep(pause)
