"""Which of many prefixes a name begins with, found without looking at all of them. Pure.

Kept sorted: the longest prefix of a name, if it is there, is the name's predecessor in that order, or what that begins
with; for whatever stands between a prefix and a longer name begins with the prefix too. From there each leads to the
next shorter one. Who leads to whom is found out when it is first asked for.
"""

from bisect import bisect_right, insort

_NONE = ""


class Prefixes:
    """A set of prefixes. None of them is empty."""

    def __init__(self) -> None:
        self._sorted: list[str] = []
        self._shorter: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._sorted)

    def add(self, prefix: str) -> None:
        """One that is not there yet."""
        insort(self._sorted, prefix)
        self._shorter.clear()

    def remove(self, prefix: str) -> None:
        """One that is there."""
        del self._sorted[bisect_right(self._sorted, prefix) - 1]
        self._shorter.clear()

    def of(self, name: str) -> list[str]:
        """All that the name begins with, the longest first."""
        found: list[str] = []
        prefixes = self._sorted
        position = bisect_right(prefixes, name)
        prefix = prefixes[position - 1] if position else _NONE
        shorter = self._shorter
        while prefix:
            if name.startswith(prefix):
                found.append(prefix)
            known = shorter.get(prefix)
            prefix = self._next_shorter(prefix) if known is None else known
        return found

    def _next_shorter(self, prefix: str) -> str:
        """The longest that this one begins with, besides itself."""
        found = self._shorter[prefix] = self._longest(prefix[:-1])
        return found

    def _longest(self, name: str) -> str:
        while name and (position := bisect_right(self._sorted, name)):
            prefix = self._sorted[position - 1]
            if name.startswith(prefix):
                return prefix
            name = _common(name, prefix)  # whatever is looked for is what both begin with, too
        return _NONE


def _common(one: str, other: str) -> str:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:position]
    return min(one, other, key=len)
