"""Patterns in JSON Schemas. They come from outside, so RE2 matches them: in linear time."""

from functools import lru_cache
from typing import Any

import re2

PROGRAM_BYTES_MAX = 1 << 20


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def matches(pattern: str, name: str) -> bool | None:
    """None: nobody knows, for RE2 does not understand the pattern (it has no look-ahead, for one)."""
    found = _compiled(pattern)
    return None if found is None else found.search(name) is not None
