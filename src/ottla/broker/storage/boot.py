"""Whether the machine has crashed since this broker last ran.

A killed process loses nothing that it wrote, because the kernel still has it; a crashed machine loses what was not
synced. The kernel's boot id tells one boot from the next: each data directory remembers the one it was last used in.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.broker.storage.checkpoints import CLEAN_SHUTDOWN
from ottla.broker.storage.disk import Disk

FILE_NAME = "boot.id"
_KERNELS = Path("/proc/sys/kernel/random/boot_id")

BootId = Callable[[], str | None]


def kernel_boot_id() -> str | None:
    """The id of this boot; None where the kernel does not tell."""
    try:
        return _KERNELS.read_text(encoding="ascii").strip()
    except OSError:
        return None


class BootRecord:
    """What the data directories remember. Ask it before the logs are opened: that takes the marks of a clean stop."""

    def __init__(self, directories: Sequence[str], disk: Disk, boot_id: BootId) -> None:
        self._directories = directories
        self._disk = disk
        self._boot_id = boot_id()

    def tails_may_be_lost(self) -> bool:
        """Whether any directory may lack the end of what was written to it, or is not the one it was before."""
        return any(self._may_have_lost(directory) for directory in self._directories)

    def remember(self) -> None:
        """Note that the directories are used in this boot; what may have been lost before was acted on."""
        if self._boot_id is None:
            return
        for directory in self._directories:
            if _read(directory) != self._boot_id:
                path = os.path.join(directory, FILE_NAME)
                self._disk.replace_file(path, self._boot_id.encode("ascii"), durable=True)

    def _may_have_lost(self, directory: str) -> bool:
        known = _read(directory)
        if known is None:  # new, or the disk was replaced
            return True
        return known != self._boot_id and not os.path.exists(os.path.join(directory, CLEAN_SHUTDOWN))


def _read(directory: str) -> str | None:
    try:
        return Path(directory, FILE_NAME).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
