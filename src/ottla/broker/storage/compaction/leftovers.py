"""What an interrupted cleaning left in a partition's directory, and putting it in order at the next start.

A swap goes through these steps; the names are on disk before the next step begins:

1. The new segment's .cleaned files are renamed to .swap, the .log last. From here on the new segment counts.
2. The segments that it replaces are renamed to .deleted, each one's .log last.
3. The .swap files get their proper names, the .log last.

So a .log.swap says that its segment is complete and that the ones it replaces must go, and without it every other
.cleaned or .swap file is waste. Which ones it replaces follows from its offsets: those that begin inside of it. A
replaced segment of which nothing was kept may begin behind it and stay; it holds nothing that the next cleaning, which
begins where this one did, would not remove.
"""

import logging
import os

from ottla.broker.storage.disk import Disk, SegmentFile, unlink_if_there
from ottla.broker.storage.scan import iterate_headers
from ottla.broker.storage.segment_files import SEGMENT_SUFFIXES, SUFFIX_LOG, base_offsets, segment_prefix
from ottla.protocol.errors import CorruptBatch

logger = logging.getLogger(__name__)

SUFFIX_CLEANED = ".cleaned"
SUFFIX_SWAP = ".swap"
LOG_LAST = tuple(reversed(SEGMENT_SUFFIXES))


def finish_swaps(directory: str, names: set[str], disk: Disk) -> None:
    """Complete or undo what was under way. `names` is the directory's content and is kept up to date."""
    for name in [name for name in names if name.endswith(SUFFIX_CLEANED)]:
        _remove(directory, name, names)
    for base_offset in base_offsets(names, SUFFIX_LOG + SUFFIX_SWAP):
        _finish(directory, base_offset, names, disk)
    for name in [name for name in names if name.endswith(SUFFIX_SWAP)]:
        _remove(directory, name, names)


def _finish(directory: str, base_offset: int, names: set[str], disk: Disk) -> None:
    logger.info(
        "Log cleaner: completing the swap of segment %d in %s, which a shutdown interrupted", base_offset, directory
    )
    after = _next_offset(directory, base_offset, disk)
    for replaced in base_offsets(names, SUFFIX_LOG):
        # Its own predecessor is there only until step 2 is done, and then with all of its files.
        if base_offset == replaced or base_offset < replaced < after:
            for suffix in LOG_LAST:
                _remove(directory, _stem(replaced) + suffix, names)
    for suffix in LOG_LAST:
        swapped, final = _stem(base_offset) + suffix + SUFFIX_SWAP, _stem(base_offset) + suffix
        if swapped in names:
            os.rename(os.path.join(directory, swapped), os.path.join(directory, final))
            names.discard(swapped)
            names.add(final)
    disk.sync_path(directory)


def _next_offset(directory: str, base_offset: int, disk: Disk) -> int:
    path = os.path.join(directory, _stem(base_offset) + SUFFIX_LOG + SUFFIX_SWAP)
    file = SegmentFile(disk.open(path, os.O_RDONLY))
    after = base_offset
    try:
        for _, header in iterate_headers(file, 0, os.fstat(file.fd).st_size, base_offset):
            after = header.next_offset
    except CorruptBatch as error:
        logger.warning("Corrupt segment file %s: %s", path, error)
    return after


def _stem(base_offset: int) -> str:
    return os.path.basename(segment_prefix("", base_offset))


def _remove(directory: str, name: str, names: set[str]) -> None:
    unlink_if_there(os.path.join(directory, name))
    names.discard(name)
