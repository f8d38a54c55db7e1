"""A worker's modules are out of the collector's way, and what comes later is not."""

import gc
import os
import sys
import types
from collections.abc import Iterator

import pytest

from ottla.spark import worker_heap


@pytest.fixture(autouse=True)
def _thawed_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_heap, "_frozen_in", None)
    yield
    gc.unfreeze()


def test_what_is_loaded_is_frozen_once() -> None:
    loaded: list[object] = []
    worker_heap.freeze_modules()
    assert gc.get_freeze_count() > 1000
    later: list[object] = []
    worker_heap.freeze_modules()
    assert not _within_reach(loaded)
    assert _within_reach(later)


def _within_reach(one: object) -> bool:
    """Of the collector: it lists what is not frozen. (Counts say less: what other tests left dies when it likes.)"""
    return any(found is one for found in gc.get_objects())


def test_modules_that_come_with_another_task_are_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_heap.freeze_modules()
    module = types.ModuleType("came_later")
    contents: list[object] = []
    module.__dict__["contents"] = contents
    monkeypatch.setitem(sys.modules, "came_later", module)
    worker_heap.freeze_modules()
    assert not _within_reach(contents)


def test_a_forked_worker_settles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_heap.freeze_modules()
    monkeypatch.setattr(worker_heap, "_frozen_in", (os.getpid() + 1, len(sys.modules)))  # as a child finds it
    kept: list[object] = []
    worker_heap.freeze_modules()
    assert not _within_reach(kept)
