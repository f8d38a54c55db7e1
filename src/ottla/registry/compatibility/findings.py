"""What a comparison finds, in words, and how much work it may be."""

from typing import NamedTuple

from ottla.registry.errors import TooComplex
from ottla.registry.limits import LIMITS


class Finding(NamedTuple):
    """One reason why a schema cannot follow another. `kind` is the row of the table, `path` where."""

    kind: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{{errorType:'{self.kind}', description:'{self.text}', path:'{self.path or '/'}'}}"


class Work:
    """Counts steps, and ends what would not end in time."""

    __slots__ = ("_left",)

    def __init__(self, steps_max: int = LIMITS.steps_max) -> None:
        self._left = steps_max

    def step(self, count: int = 1) -> None:
        self._left -= count
        if self._left < 0:
            raise TooComplex("comparing these schemas takes more steps than are allowed: make the schema simpler")
