"""How much memory there is for what is started here: the machine's, or what its container may use of it."""

import os
from collections.abc import Sequence
from pathlib import Path

_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of the container, as the second and the first version of control groups tell it."""


def memory_bytes(limits: Sequence[Path] = _LIMITS) -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for path in limits if (limit := _limit(path)) is not None)])


def _limit(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # none of this version, or `max`
        return None
