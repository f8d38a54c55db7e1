"""How long whoever guesses passwords has to wait. Pure: time comes in as an argument.

Failures are counted by name, by address, and by both. A few are free; then each doubles the wait. Nobody is locked out
for good, and somebody else's failures with a name cost its owner seconds at most.
"""

from typing import NamedTuple

FREE = 3
SECONDS_MAX = 60.0
NAME_FREE = 20
NAME_SECONDS_MAX = 5.0
ADDRESS_FREE = 30
FORGOTTEN_SECONDS = 900.0
KNOWN_MAX = 10_000

_Key = tuple[str, str]


class _Failures(NamedTuple):
    number: int
    last: float


class Delays:
    def __init__(self) -> None:
        self._failures: dict[_Key, _Failures] = {}

    def wait_seconds(self, name: str, address: str, now: float) -> float:
        """How long until this name may be tried from this address; 0: now."""
        rules = (
            ((name, address), FREE, SECONDS_MAX),
            ((name, ""), NAME_FREE, NAME_SECONDS_MAX),
            (("", address), ADDRESS_FREE, SECONDS_MAX),
        )
        return max(self._wait(key, free, most, now) for key, free, most in rules)

    def _wait(self, key: _Key, free: int, most: float, now: float) -> float:
        found = self._failures.get(key)
        if found is None or found.number < free or now - found.last > FORGOTTEN_SECONDS:
            return 0.0
        pause: float = min(most, 2.0 ** min(found.number - free, 30))
        return max(0.0, found.last + pause - now)

    def failed(self, name: str, address: str, now: float) -> None:
        for key in ((name, address), (name, ""), ("", address)):
            found = self._failures.pop(key, None)
            fresh = found is None or now - found.last > FORGOTTEN_SECONDS
            self._failures[key] = _Failures(1 if fresh or found is None else found.number + 1, now)
        while len(self._failures) > KNOWN_MAX:
            del self._failures[next(iter(self._failures))]  # the one that failed longest ago

    def succeeded(self, name: str, address: str) -> None:
        """The last one that was counted was none; those of other names and from other addresses stay."""
        self._failures.pop((name, address), None)
        for key in ((name, ""), ("", address)):
            found = self._failures.get(key)
            if found is not None:
                self._failures[key] = found._replace(number=max(0, found.number - 1))
