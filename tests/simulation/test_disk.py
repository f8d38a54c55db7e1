"""Machines that crash: what was forced to disk stays, the rest may go."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.simulation.disk import Machine, names_watched


@pytest.fixture(params=range(12))
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(str(tmp_path / "machine"), random.Random(request.param))
    with names_watched([made]):
        yield made


def content(machine: Machine, name: str) -> bytes | None:
    path = Path(machine.root) / name
    return path.read_bytes() if path.exists() else None


def write(machine: Machine, name: str, data: bytes, *, at: int = 0, sync: bool = False) -> None:
    descriptor = machine.open(f"{machine.root}/{name}", os.O_RDWR | os.O_CREAT)
    machine.write_whole(descriptor, data, at)
    if sync:
        machine.fdatasync(descriptor)
    os.close(descriptor)


def test_what_was_synced_survives(machine: Machine) -> None:
    write(machine, "log", b"kept", sync=True)
    machine.sync_path(machine.root)
    write(machine, "log", b"perhaps", at=4)
    machine.crash()
    found = content(machine, "log")
    assert found is not None
    assert found[:4] == b"kept"
    assert found[4:].rstrip(b"\0") == b"perhaps"[: len(found[4:].rstrip(b"\0"))]


def test_a_kill_loses_nothing(machine: Machine) -> None:
    write(machine, "log", b"all of it")
    machine.kill_process()
    assert content(machine, "log") == b"all of it"


def test_a_name_counts_when_its_directory_is_synced(machine: Machine) -> None:
    os.makedirs(f"{machine.root}/topic-0")
    machine.sync_path(machine.root)
    machine.replace_file(f"{machine.root}/topic-0/epochs", b"one", durable=True)
    machine.replace_file(f"{machine.root}/topic-0/epochs", b"two", durable=False)
    os.unlink(f"{machine.root}/topic-0/epochs")
    machine.crash()
    assert content(machine, "topic-0/epochs") in (b"one", b"two", b"", b"t", b"tw", b"\0", b"\0\0", b"\0\0\0", None)


def test_durable_replacement_is_whole(machine: Machine) -> None:
    machine.replace_file(f"{machine.root}/checkpoint", b"first", durable=True)
    machine.replace_file(f"{machine.root}/checkpoint", b"second", durable=True)
    machine.crash()
    assert content(machine, "checkpoint") == b"second"


def test_truncation_may_be_undone(machine: Machine) -> None:
    write(machine, "log", b"0123456789", sync=True)
    machine.sync_path(machine.root)
    descriptor = machine.open(f"{machine.root}/log", os.O_RDWR)
    machine.ftruncate(descriptor, 4)
    os.close(descriptor)
    machine.crash()
    assert content(machine, "log") in (b"0123", b"0123456789")


def test_another_boot_follows_a_crash_only(machine: Machine) -> None:
    before = machine.boot_id
    machine.kill_process()
    assert machine.boot_id == before
    machine.crash()
    assert machine.boot_id != before


def test_something_is_lost_by_some_chance(tmp_path: Path) -> None:
    outcomes = set()
    for seed in range(30):
        machine = Machine(str(tmp_path / str(seed)), random.Random(seed))
        with names_watched([machine]):
            write(machine, "log", b"kept", sync=True)
            machine.sync_path(machine.root)
            write(machine, "log", b"more", at=4)
            write(machine, "new", b"x", sync=True)
            machine.crash()
        outcomes.add((content(machine, "log"), content(machine, "new")))
    assert {log for log, _ in outcomes} >= {b"kept", b"keptmore"}
    assert {new for _, new in outcomes} == {None, b"x"}
