"""Where the time went: parts of a run, one after the other."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    seconds: float


class Stopwatch:
    """Every moment belongs to one part: naming the next one ends the last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.parts: list[Part] = []
        self._clock = clock
        self._name = ""
        self._since = clock()

    def part(self, name: str) -> None:
        now = self._clock()
        if self._name:
            self.parts.append(Part(self._name, now - self._since))
        self._name, self._since = name, now

    def stop(self) -> Sequence[Part]:
        self.part("")
        return self.parts
