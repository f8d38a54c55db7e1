"""What a process costs, as Linux tells it."""

import os
from pathlib import Path


def resident_bytes(pid: int) -> int:
    """Physical memory in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def open_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def open_sockets(pid: int) -> int:
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += entry.readlink().name.startswith("socket:")
        except FileNotFoundError:
            continue  # closed while we looked
    return found
