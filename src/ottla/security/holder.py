"""Whom a signed token speaks of."""

from typing import NamedTuple


class Holder(NamedTuple):
    """Whom a token that is in order speaks of, and until when."""

    user: str
    expires_ms: int
