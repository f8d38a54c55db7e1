"""Patterns that clients send. They are matched in linear time (RE2), so that none can hold up the broker."""

from collections.abc import Callable
from functools import lru_cache

import re2

from ottla.model.errors import ApiError, ErrorCode

PROGRAM_BYTES_MAX = 1 << 20


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """A test for whole names. Raises ApiError INVALID_REGULAR_EXPRESSION for what RE2 does not understand."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PROGRAM_BYTES_MAX
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION, f"The regular expression {pattern!r} is not valid: {reason}."
        ) from None
    return lambda name: compiled.fullmatch(name) is not None
