"""What comes back after a crash, whatever state the files are in."""

import contextlib
import os
import random
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.broker.storage.conftest import NOW_MS, LogKit, batch, read_records, values

from ottla.broker.storage.log import Log
from ottla.model.errors import ApiError
from ottla.protocol.compression import Codec
from ottla.protocol.errors import CorruptBatch

SMALL = {"segment_bytes": 500, "index_interval_bytes": 100}


def fill(log: Log, count: int) -> None:
    for number in range(log.end_offset, log.end_offset + count):
        log.append_as_leader(
            batch(b"%06d" % number + b"x" * 40, timestamp=NOW_MS + number, producer_id=1, sequence=number), 0, NOW_MS
        )


def check_usable(log: Log) -> None:
    """The log is consistent, readable from end to end, and takes more."""
    records = read_records(log)
    assert [record.offset for record in records] == list(range(log.start_offset, log.end_offset))
    before = log.end_offset
    assert log.append_as_leader(batch(b"more"), 0, NOW_MS).base_offset == before
    assert read_records(log)[-1].value == b"more"


def test_a_tail_torn_at_every_byte(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 3)
    whole = log.size_bytes
    log.append_as_leader(batch(b"last one", b"and one more", codec=Codec.LZ4), 0, NOW_MS)
    size = log.size_bytes
    log.release()
    file = kit.files(".log")[0]
    content = file.read_bytes()
    for cut in range(whole, size + 1):
        file.write_bytes(content[:cut])
        log = kit.open(clean=False)
        assert log.end_offset == (5 if cut == size else 3)
        assert file.stat().st_size == (size if cut == size else whole)
        assert len(read_records(log)) == log.end_offset
        log.release()


def test_a_tail_of_zeros_or_garbage(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 3)
    log.release()
    file = kit.files(".log")[0]
    content = file.read_bytes()
    for tail in (bytes(1), bytes(60), bytes(5000), b"\xff" * 61, content[:70], content):
        file.write_bytes(content + tail)
        log = kit.open(clean=False)
        assert file.read_bytes() == content
        log.release()


def test_every_flipped_byte_of_the_last_batch_cuts_it(kit: LogKit) -> None:
    log = kit.create()
    fill(log, 2)
    keep = log.size_bytes
    fill(log, 1)
    log.release()
    file = kit.files(".log")[0]
    content = file.read_bytes()
    for position in range(keep, len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        file.write_bytes(damaged)
        log = kit.open(clean=False)
        # Offset and leader epoch are not covered by the CRC: a batch that still fits the order is kept.
        assert log.end_offset == 2 or position - keep < 16
        log.release()


def test_only_segments_from_the_recovery_point_on_are_checked(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 12)
    log.flush()
    fill(log, 12)
    log.release()
    damaged = kit.files(".log")[0]
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    assert kit.open(clean=False, recovery_point=log.recovery_point).end_offset == 24
    assert kit.open(clean=False, recovery_point=0).end_offset < 24


def test_damage_in_the_middle_drops_what_follows(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 20)
    log.release()
    files = kit.files(".log")
    content = bytearray(files[1].read_bytes())
    content[-1] ^= 1
    files[1].write_bytes(content)
    log = kit.open(clean=False)
    assert log.end_offset == int(files[2].stem) - 1
    assert len(kit.files(".log")) == 2
    check_usable(log)
    check_usable(kit.reopen(log, clean=True))


def test_a_segment_that_lost_its_end_between_two_batches_drops_what_follows(kit: LogKit) -> None:
    """Nothing in the file shows the loss; only the next segment's name does. A killed process loses nothing."""
    log = kit.create(**SMALL)
    fill(log, 20)
    log.release()
    files = kit.files(".log")
    first, second = int(files[1].stem), int(files[2].stem)
    content = files[1].read_bytes()
    files[1].write_bytes(content[: len(content) // (second - first) * (second - first - 1)])
    assert kit.open(clean=False).end_offset == 20
    log = kit.open(clean=False, tails_may_be_lost=True)
    assert log.end_offset == second - 1
    check_usable(log)


def test_missing_indexes_are_rebuilt(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 20)
    log.close()
    before = {file.name: file.read_bytes() for file in kit.files("index")}
    for file in kit.files("index"):
        file.unlink()
    log = kit.open(clean=True)
    assert {file.name: file.read_bytes() for file in kit.files("index")} == before
    check_usable(log)


def test_recovered_indexes_equal_those_of_a_clean_stop(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 20)
    log.close()
    before = {file.name: file.read_bytes() for file in kit.files("index")}
    kit.open(clean=False).release()
    assert {file.name: file.read_bytes() for file in kit.files("index")} == before


def test_an_empty_directory_becomes_an_empty_log(kit: LogKit) -> None:
    kit.directory.mkdir()
    for clean in (True, False):
        log = kit.open(clean=clean)
        assert (log.start_offset, log.end_offset) == (0, 0)
        log.release()
    shutil.rmtree(kit.directory)
    kit.directory.mkdir()
    log = kit.open(clean=False, start_offset=40)
    assert (log.start_offset, log.end_offset) == (40, 40)
    check_usable(log)


def test_leftovers_are_cleared(kit: LogKit) -> None:
    kit.create().close()
    for name in ("00000000000000000007.log.deleted", "00000000000000000009.index", "leader-epoch-checkpoint.tmp"):
        (kit.directory / name).write_bytes(b"x")
    (kit.directory / "notes.txt").write_text("left alone")
    kit.open(clean=True)
    names = {file.name for file in kit.directory.iterdir()}
    assert "notes.txt" in names
    assert not {name for name in names if name.endswith((".deleted", ".tmp")) or "0009" in name}


def test_overlapping_segments_after_a_crash(kit: LogKit) -> None:
    log = kit.create(**SMALL)
    fill(log, 20)
    log.release()
    copy = kit.files(".log")[0]
    shutil.copy(copy, kit.directory / "00000000000000000002.log")
    log = kit.open(clean=False)
    assert values(log)
    check_usable(log)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One of the ways in which a file goes bad."""
    choice = chance.randrange(6)
    content = bytearray(data)
    if choice == 0 or not content:
        return bytes(content) + chance.randbytes(chance.randrange(1, 100))
    position = chance.randrange(len(content))
    if choice == 1:
        content[position] ^= 1 << chance.randrange(8)
    elif choice == 2:
        del content[position:]
    elif choice == 3:
        content[position : position + 8] = chance.choice([b"\xff" * 8, bytes(8), b"\x7f" + b"\xff" * 7])
    elif choice == 4:
        del content[position : position + chance.randrange(1, 30)]
    else:
        start = chance.randrange(len(content))
        content[position:position] = content[start : start + chance.randrange(1, 200)]
    return bytes(content)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_mutated_files_never_break_the_opener(tmp_path: Path, seed: int, clean: bool) -> None:
    chance = random.Random(seed)
    kit = LogKit(tmp_path)
    log = kit.create(segment_bytes=300, index_interval_bytes=0)
    fill(log, 7)
    log.close()
    originals = {file.name: file.read_bytes() for file in kit.directory.iterdir()}
    for _ in range(120):
        for file in kit.directory.iterdir():
            file.unlink()
        victims = chance.sample(sorted(originals), chance.randrange(1, 4))
        for name, content in originals.items():
            (kit.directory / name).write_bytes(mutate(content, chance) if name in victims else content)
        log = kit.open(clean=clean, recovery_point=chance.choice([0, 3, 7, 2**40]))
        try:
            exercise(log)
        finally:
            log.release()


def exercise(log: Log) -> None:
    """Whatever the files hold, calls answer or refuse with an ApiError."""
    with contextlib.suppress(ApiError, CorruptBatch):  # the bytes may be damaged, as a client would find
        read_records(log)
    calls: list[Callable[[], object]] = [
        lambda: log.offset_for_timestamp(NOW_MS + 3),
        log.max_timestamp_offset,
        lambda: log.append_as_leader(batch(b"x" * 100), 1, NOW_MS),
        lambda: log.read(log.end_offset - 1, 10, log.end_offset, min_one_batch=True),
        lambda: log.truncate_to(log.end_offset - 1),
        lambda: log.apply_retention(NOW_MS + 10**10),
        log.close,
    ]
    for call in calls:
        with contextlib.suppress(ApiError):
            call()


def test_epochs_are_those_of_the_records_that_are_there(kit: LogKit) -> None:
    """A machine crashes after records were cut off and others took their place: the old ones are there again."""
    log = kit.create()
    fill(log, 3)
    log.release()
    file = kit.files(".log")[0]
    old = file.read_bytes()
    log = kit.open(clean=False)
    log.truncate_to(1)
    log.append_as_leader(batch(b"of another leader", b"and one more"), 7, NOW_MS)
    assert log.leader_epochs.entries() == [(0, 0), (7, 1)]
    log.release()
    file.write_bytes(old)
    for clean in (False, True):  # what was found out is also written down
        log = kit.open(clean=clean)
        assert log.end_offset == 3
        assert log.leader_epochs.entries() == [(0, 0)]
        log.release()


@pytest.mark.parametrize("descriptors", range(4))
def test_a_log_for_which_there_were_no_descriptors_is_made_by_the_next_attempt(kit: LogKit, descriptors: int) -> None:
    """What the first attempt has made cannot be removed then: that takes a descriptor, too."""
    made: Log | None = None
    with _descriptors_left(descriptors), contextlib.suppress(OSError):
        made = kit.create()
    log = made or kit.create()
    fill(log, 3)
    log.release()
    with pytest.raises(FileExistsError):
        kit.create()
    assert kit.open(clean=False).end_offset == 3, "records stay"


@contextlib.contextmanager
def _descriptors_left(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(held) + 50, hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for descriptor in held[len(held) - count :]:
            os.close(descriptor)
            held.remove(descriptor)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
