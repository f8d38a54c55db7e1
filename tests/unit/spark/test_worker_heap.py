"""A worker's modules are out of the collector's way, and what comes later is not."""

import gc
import os
from collections.abc import Iterator

import pytest

from ottla.spark import worker_heap


@pytest.fixture(autouse=True)
def _thawed_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker_heap, "_settled_in", None)
    yield
    gc.unfreeze()


def test_what_is_loaded_is_frozen_once_in_a_process() -> None:
    worker_heap.settle()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    later: list[object] = []
    later.append(later)
    worker_heap.settle()
    assert gc.get_freeze_count() == frozen
    assert any(found is later for found in gc.get_objects())


def test_a_forked_worker_settles_anew() -> None:
    worker_heap.settle()
    assert worker_heap._settled_in == os.getpid()
    worker_heap._settled_in = os.getpid() + 1  # as a child finds it
    kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    before = gc.get_freeze_count()
    worker_heap.settle()
    assert gc.get_freeze_count() >= before + len(kept)
