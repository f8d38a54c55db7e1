"""Disks that keep, when their machine crashes, only what was forced to them.

The files are real ones in a temporary directory (in memory where the system has /dev/shm), so the storage code runs
as it is. Beside them stands what would survive a power cut:

- *Content.* Bytes appended since the last fdatasync of a file survive up to a point that chance picks, or come back as
  zeros (the length was written, the data was not). Bytes that were overwritten or cut off since then may come back.
- *Names.* Creating, renaming and unlinking counts when the directory is synced. At a crash the changes of a directory
  since then survive up to a point that chance picks, in the order in which they were made, and the rest is undone.
  (File systems with a journal keep the order of such changes: no later one survives an earlier one.)

Killing a process loses nothing, as the kernel keeps what was written. What is not modelled: sectors that go bad, and
writes that an fdatasync claimed to have forced out and did not.
"""

import contextlib
import itertools
import os
import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ottla.broker.storage.disk import Disk

_REAL_RENAME, _REAL_UNLINK, _REAL_MKDIR, _REAL_RMDIR = os.rename, os.unlink, os.mkdir, os.rmdir
_REAL_OPEN = os.open
NULL_DEVICE = os.open(os.devnull, os.O_RDWR)


class _File:
    """What would be left of one file."""

    __slots__ = ("before", "durable_size")

    def __init__(self, size: int = 0) -> None:
        self.durable_size = size
        self.before: bytes | None = None
        """The first `durable_size` bytes as they were synced, once they have been changed since; else None."""


class _Change:
    """A change of names that is not durable yet."""

    __slots__ = ("directories", "forget", "undo")

    def __init__(
        self, directories: tuple[str, ...], undo: Callable[[], None], forget: Callable[[], None] | None = None
    ) -> None:
        self.directories = directories
        self.undo = undo
        self.forget = forget
        """Called when it is durable, to clear away what an undo would have needed."""


class Machine(Disk):
    """The disk of one machine, in every life of the broker on it. `root` is where its files are."""

    def __init__(self, root: str, chance: random.Random) -> None:
        self.root = root
        self.boot_id = str(uuid.UUID(int=chance.getrandbits(128)))
        self._attic = root + ".attic"
        """Where files go that were unlinked and may have to come back."""
        self._chance = chance
        self._files: dict[int, _File] = {}
        self._open: dict[int, int] = {}
        """Descriptor to inode. Descriptors are closed behind our back, and reused only through `open`."""
        self._changes: list[_Change] = []
        self._numbers = itertools.count()
        _REAL_MKDIR(root)
        _REAL_MKDIR(self._attic)

    # -- content

    def open(self, path: str, flags: int) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.exists(path)
        cut = bool(flags & os.O_TRUNC) and not is_new
        descriptor = _REAL_OPEN(path, (flags & ~os.O_TRUNC) | os.O_CLOEXEC, 0o644)
        inode = os.fstat(descriptor).st_ino
        self._open[descriptor] = inode
        if is_new:
            self._files[inode] = _File()
            self._note_created(path)
        elif cut:
            self.ftruncate(descriptor, 0)
        return descriptor

    def _file(self, descriptor: int) -> _File:
        inode = self._open[descriptor]
        file = self._files.get(inode)
        if file is None:
            file = self._files[inode] = _File(os.fstat(descriptor).st_size)
        return file

    def _keep_what_is_durable(self, descriptor: int, file: _File) -> None:
        if file.before is None and file.durable_size:
            path = f"/proc/self/fd/{descriptor}"  # the descriptor itself may be open for writing only
            with open(path, "rb") as reader:
                file.before = reader.read(file.durable_size)

    def pwrite(self, descriptor: int, data: Any, position: int) -> int:
        file = self._file(descriptor)
        if position < file.durable_size:
            self._keep_what_is_durable(descriptor, file)
        return os.pwrite(descriptor, data, position)

    def ftruncate(self, descriptor: int, size: int) -> None:
        file = self._file(descriptor)
        if size < file.durable_size:
            self._keep_what_is_durable(descriptor, file)
        os.ftruncate(descriptor, size)

    def fdatasync(self, descriptor: int) -> None:  # type: ignore[override]
        file = self._file(descriptor)
        file.durable_size = os.fstat(descriptor).st_size
        file.before = None

    def sync_path(self, path: str) -> None:
        status = os.stat(path)
        if os.path.isdir(path):
            self._sync_names(path)
        else:
            file = self._files.setdefault(status.st_ino, _File())
            file.durable_size, file.before = status.st_size, None

    # -- names

    def _sync_names(self, directory: str) -> None:
        left = []
        for change in self._changes:
            if directory in change.directories:
                if change.forget is not None:
                    change.forget()
            else:
                left.append(change)
        self._changes = left

    def _note_created(self, path: str) -> None:
        self._changes.append(_Change((os.path.dirname(path),), lambda: _remove(path)))

    def renamed(self, source: str, target: str) -> None:
        """Instead of os.rename."""
        kept = self._set_aside(target) if os.path.isfile(target) else None
        _REAL_RENAME(source, target)

        def undo() -> None:
            if os.path.lexists(target):
                _REAL_RENAME(target, source)
            if kept is not None:
                _REAL_RENAME(kept, target)

        self._note((os.path.dirname(source), os.path.dirname(target)), undo, kept)

    def unlinked(self, path: str) -> None:
        """Instead of os.unlink."""
        kept = os.path.join(self._attic, str(next(self._numbers)))
        _REAL_RENAME(path, kept)
        self._note((os.path.dirname(path),), lambda: _put_back(kept, path), kept)

    def directory_made(self, path: str, mode: int) -> None:
        _REAL_MKDIR(path, mode)
        self._note_created(path)

    def directory_removed(self, path: str) -> None:
        _REAL_RMDIR(path)
        self._changes.append(_Change((os.path.dirname(path),), lambda: _REAL_MKDIR(path)))

    def _set_aside(self, path: str) -> str:
        kept = os.path.join(self._attic, str(next(self._numbers)))
        os.link(path, kept)
        return kept

    def _note(self, directories: tuple[str, ...], undo: Callable[[], None], kept: str | None) -> None:
        def forget() -> None:
            if kept is not None:
                self._files.pop(os.stat(kept).st_ino, None)
                _REAL_UNLINK(kept)

        self._changes.append(_Change(directories, undo, forget))

    # -- ends

    def kill_process(self) -> None:
        """Close what the process had open, and with it its locks; numbers stay taken until their owners are gone."""
        for descriptor, inode in self._open.items():
            with contextlib.suppress(OSError):
                if os.fstat(descriptor).st_ino == inode:
                    os.dup2(NULL_DEVICE, descriptor, inheritable=False)
        self._open.clear()

    def crash(self) -> None:
        """The machine stops; what was not forced to its disk is lost, wholly or in part. Another boot follows."""
        self.kill_process()
        survive = self._chance.choice((0, self._chance.randint(0, len(self._changes)), len(self._changes)))
        for change in reversed(self._changes[survive:]):
            # In a directory that was renamed since, and for good, there is nothing at the old path to undo.
            with contextlib.suppress(FileNotFoundError):
                change.undo()
        for change in self._changes[:survive]:
            if change.forget is not None:
                change.forget()
        self._changes.clear()
        for directory, _, names in os.walk(self.root):
            for name in names:
                self._lose(os.path.join(directory, name))
        self.boot_id = str(uuid.UUID(int=self._chance.getrandbits(128)))

    def _lose(self, path: str) -> None:
        status = os.stat(path)
        file = self._files.get(status.st_ino)
        if file is None or (file.before is None and status.st_size <= file.durable_size):
            return
        size, durable = status.st_size, file.durable_size
        if file.before is not None:
            if self._chance.random() < 0.5:  # what was changed of the durable part was not written back either
                with open(path, "wb") as writer:
                    writer.write(file.before)
            file.durable_size, file.before = os.stat(path).st_size, None
            return
        survives = self._chance.choice((durable, self._chance.randint(durable, size), size))
        os.truncate(path, survives)
        if survives < size and self._chance.random() < 0.25:
            os.truncate(path, self._chance.randint(survives, size))  # the length made it, the bytes did not: zeros
        file.durable_size = os.stat(path).st_size

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self._attic, ignore_errors=True)


def _remove(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        _REAL_UNLINK(path)


def _put_back(kept: str, path: str) -> None:
    _REAL_RENAME(kept, path)


@contextlib.contextmanager
def names_watched(machines: list[Machine]) -> Iterator[None]:
    """While this lasts, os.rename and its like tell the machine whose files they are about."""

    def machine_of(path: str) -> Machine | None:
        return next((machine for machine in machines if path.startswith(machine.root + "/")), None)

    def resolved(path: Any, directory: int | None) -> str:
        text = os.fspath(path)
        return text if directory is None else str(Path(f"/proc/self/fd/{directory}").readlink() / text)

    def rename(source: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        before, after = resolved(source, src_dir_fd), resolved(target, dst_dir_fd)
        machine = machine_of(before)
        _REAL_RENAME(before, after) if machine is None else machine.renamed(before, after)

    def unlink(path: Any, *, dir_fd: int | None = None) -> None:
        whole = resolved(path, dir_fd)
        machine = machine_of(whole)
        _REAL_UNLINK(whole) if machine is None else machine.unlinked(whole)

    def mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        whole = resolved(path, dir_fd)
        machine = machine_of(whole)
        _REAL_MKDIR(whole, mode) if machine is None else machine.directory_made(whole, mode)

    def rmdir(path: Any, *, dir_fd: int | None = None) -> None:
        whole = resolved(path, dir_fd)
        machine = machine_of(whole)
        _REAL_RMDIR(whole) if machine is None else machine.directory_removed(whole)

    os.rename, os.unlink, os.mkdir, os.rmdir = rename, unlink, mkdir, rmdir  # type: ignore[assignment]
    try:
        yield
    finally:
        os.rename, os.unlink, os.mkdir, os.rmdir = _REAL_RENAME, _REAL_UNLINK, _REAL_MKDIR, _REAL_RMDIR
