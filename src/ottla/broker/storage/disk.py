"""The few disk operations whose failure the log must survive, in one place so that a test can make them fail."""

import contextlib
import errno
import os

from ottla.protocol.compression import Buffer

# The disk is full, over quota or read-only: nothing is broken, an operator can make room and the log goes on.
PASSING_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EMFILE, errno.ENFILE})


class Disk:
    """The real disk. Tests subclass it; the calls of the hot path are the kernel's own, without a wrapper."""

    pwrite = staticmethod(os.pwrite)
    pread = staticmethod(os.pread)
    fdatasync = staticmethod(os.fdatasync)
    ftruncate = staticmethod(os.ftruncate)

    def open(self, path: str, flags: int) -> int:
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def sync_path(self, path: str) -> None:
        """Force a file's content, or a directory's list of names, to the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def write_whole(self, descriptor: int, data: Buffer, position: int) -> None:
        """Write all of `data` at `position`; the kernel may take it in pieces."""
        view = memoryview(data)
        while view:
            written = self.pwrite(descriptor, view, position)
            if written <= 0:
                raise OSError(errno.EIO, "the disk accepted no bytes")
            view = view[written:]
            position += written

    def write_file(self, path: str, content: Buffer) -> None:
        """Create or overwrite a file in place. For files that a checksum or a later rewrite protects."""
        descriptor = self.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self.write_whole(descriptor, content, 0)
        finally:
            os.close(descriptor)

    def overwrite_file(self, path: str, content: bytes) -> None:
        """Put `content` in the place of what a small file has: for one that tells by itself whether it is whole.

        Who leads writes such a file for each partition, thousands of them when a broker starts or another dies, on the
        loop. Replacing each by a new one takes milliseconds: ext4 brings a file that takes another's name to the disk.
        """
        descriptor = self.open(path, os.O_WRONLY | os.O_CREAT)
        try:
            self.write_whole(descriptor, content, 0)
            if os.fstat(descriptor).st_size > len(content):
                self.ftruncate(descriptor, len(content))
        finally:
            os.close(descriptor)

    def replace_file(self, path: str, content: bytes, *, durable: bool) -> None:
        """Put `content` at `path` so that a reader sees the old file or the new one, never a part.

        When `durable`, it also survives a power cut once this returns.
        """
        temporary = path + ".tmp"
        descriptor = self.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            self.write_whole(descriptor, content, 0)
            if durable:
                self.fdatasync(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
        if durable:
            self.sync_path(os.path.dirname(path))


class SegmentFile:
    """An open .log file. Whoever still reads or sends from it keeps a reference; the last one closes the descriptor."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.fd)


def rename_if_there(source: str, target: str) -> bool:
    try:
        os.rename(source, target)
    except FileNotFoundError:
        return False
    return True


def unlink_if_there(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
