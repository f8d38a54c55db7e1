"""The event loop behind Spark's synchronous calls: one per process, on a thread of its own.

Spark's workers are forked and used for many tasks, so what lives on the loop (connections above all) is kept from one
task to the next, and is made anew in a process that was forked after the loop had started: threads do not survive a
fork.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_forget: list[Callable[[], None]] = []


def submit(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Start `work` on the loop; its outcome is in the future."""
    return asyncio.run_coroutine_threadsafe(work, _running_loop())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the loop and wait for its outcome; an interrupt here cancels it there."""
    future = submit(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def after_fork(forget: Callable[[], None]) -> None:
    """Register what must be forgotten in a forked child, because it belongs to its parent's loop."""
    _forget.append(forget)


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = uvloop.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="ottla-loop", daemon=True).start()
        return _loop


def _start_anew() -> None:
    global _loop, _lock
    _lock = threading.Lock()
    _loop = None
    for forget in _forget:
        forget()


os.register_at_fork(after_in_child=_start_anew)
