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
    monkeypatch.setattr(worker_heap, "_settled", None)
    yield
    gc.unfreeze()


def test_what_is_loaded_is_frozen_once() -> None:
    worker_heap.settle()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    later: list[object] = []
    later.append(later)
    worker_heap.settle()
    assert gc.get_freeze_count() == frozen
    assert any(found is later for found in gc.get_objects())


def test_modules_that_come_with_another_task_are_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_heap.settle()
    before = gc.get_freeze_count()
    module = types.ModuleType("came_later")
    module.__dict__["contents"] = [[number] for number in range(1000)]
    monkeypatch.setitem(sys.modules, "came_later", module)
    worker_heap.settle()
    assert gc.get_freeze_count() >= before + 1000


def test_a_forked_worker_settles_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    worker_heap.settle()
    monkeypatch.setattr(worker_heap, "_settled", (os.getpid() + 1, len(sys.modules)))  # as a child finds it
    kept = [[number] for number in range(1000)]
    before = gc.get_freeze_count()
    worker_heap.settle()
    assert gc.get_freeze_count() >= before + len(kept)
