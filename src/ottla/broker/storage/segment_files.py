"""How the files of a segment are called, as Kafka calls them."""

from collections.abc import Iterable

from ottla.broker.storage.transaction_index import SUFFIX_TXN_INDEX

SUFFIX_LOG = ".log"
SUFFIX_INDEX = ".index"
SUFFIX_TIME_INDEX = ".timeindex"
SUFFIX_SNAPSHOT = ".snapshot"
SUFFIX_DELETED = ".deleted"
SEGMENT_SUFFIXES = (SUFFIX_LOG, SUFFIX_INDEX, SUFFIX_TIME_INDEX, SUFFIX_TXN_INDEX)

OFFSET_MAX = 2**63 - 1


def segment_prefix(directory: str, base_offset: int) -> str:
    return f"{directory}/{base_offset:020d}"


def base_offsets(names: Iterable[str], suffix: str) -> list[int]:
    """The offsets that name the files with this suffix, sorted; other files are passed over."""
    stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
    found = (int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdecimal())
    return sorted(offset for offset in found if offset <= OFFSET_MAX)
