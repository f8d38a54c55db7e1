"""A crash of the machine is told from a crash of the process."""

from pathlib import Path

import pytest

from ottla.broker.storage.boot import BootRecord, kernel_boot_id
from ottla.broker.storage.checkpoints import CLEAN_SHUTDOWN
from ottla.broker.storage.disk import Disk


@pytest.fixture
def dirs(tmp_path: Path) -> list[str]:
    made = [tmp_path / "one", tmp_path / "two"]
    for each in made:
        each.mkdir()
    return [str(each) for each in made]


def record(dirs: list[str], boot_id: str | None) -> BootRecord:
    return BootRecord(dirs, Disk(), lambda: boot_id)


def stop_cleanly(directory: str) -> None:
    Path(directory, CLEAN_SHUTDOWN).write_text("x")


def test_a_process_that_was_killed_has_lost_nothing(dirs: list[str]) -> None:
    record(dirs, "a").remember()
    assert not record(dirs, "a").tails_may_be_lost()


def test_another_boot_without_a_clean_stop_may_have_lost_something(dirs: list[str]) -> None:
    record(dirs, "a").remember()
    stop_cleanly(dirs[0])
    assert record(dirs, "b").tails_may_be_lost()
    stop_cleanly(dirs[1])
    assert not record(dirs, "b").tails_may_be_lost()


def test_it_is_settled_once(dirs: list[str]) -> None:
    record(dirs, "a").remember()
    record(dirs, "b").remember()
    assert not record(dirs, "b").tails_may_be_lost()


def test_a_directory_that_remembers_nothing_is_another_disk(dirs: list[str]) -> None:
    record(dirs, "a").remember()
    Path(dirs[1], "boot.id").unlink()
    stop_cleanly(dirs[1])
    assert record(dirs, "a").tails_may_be_lost()


def test_a_kernel_that_does_not_tell_is_not_trusted(dirs: list[str]) -> None:
    record(dirs, "a").remember()
    assert record(dirs, None).tails_may_be_lost()
    record(dirs, None).remember()
    assert not record(dirs, "a").tails_may_be_lost()


def test_this_kernel_tells() -> None:
    assert kernel_boot_id() == kernel_boot_id()
