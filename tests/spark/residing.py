"""The tests' own JVM as one that other processes can use, as they use a resident driver's."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ottla.spark.resident.keeper import Keeper
from ottla.spark.resident.place import SWITCH, folder_of, this_key

PATIENCE_S = 120.0
MARK = "OTTLA_TEST_OF_RESIDENT_DRIVERS"


def be_alone(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a key that no other process has: this variable is part of it. The folder of sockets."""
    monkeypatch.setenv(MARK, f"{os.getpid()}-{os.urandom(4).hex()}")
    monkeypatch.delenv(SWITCH)
    folder = folder_of(os.environ)
    assert folder is not None
    return folder


@contextmanager
def serving(spark: SparkSession, folder: Path) -> Iterator[Keeper]:
    keeper = Keeper(folder, this_key(), lambda: nullcontext(spark))
    ready = threading.Event()
    thread = threading.Thread(target=lambda: keeper.run(ready.set))
    thread.start()
    try:
        assert ready.wait(PATIENCE_S)
        yield keeper
    finally:
        keeper.stop()
        thread.join(PATIENCE_S)
    assert not thread.is_alive()
