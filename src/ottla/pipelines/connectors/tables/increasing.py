"""Which rows a stream from a table reads next: those behind the last seen value, up to an end that is safe.

Shared by the database sources. Values travel in offsets as text, the form in which the database itself writes them.
"""

import itertools

import msgspec


class Mark(msgspec.Struct, frozen=True):
    """The last row that was read; everything behind it is new. Both None: nothing was read yet."""

    updated: str | None = None
    id: str | None = None

    @property
    def is_start(self) -> bool:
        return self.updated is None and self.id is None


def to_offset(mark: Mark) -> dict[str, str | None]:
    return {"updated": mark.updated, "id": mark.id}


def from_offset(offset: dict[str, str | None]) -> Mark:
    return Mark(updated=offset.get("updated"), id=offset.get("id"))


class Range(msgspec.Struct, frozen=True):
    """One task's rows: behind `after`, up to and with `until`."""

    after: str | None
    until: str | None


def split(after: int, until: int, parts: int) -> list[Range]:
    """Cut the whole numbers in (after, until] into ranges of about equal size, none of them empty."""
    count = until - after
    parts = max(1, min(parts, count))
    edges = [after + count * number // parts for number in range(parts + 1)]
    return [Range(str(low), str(high)) for low, high in itertools.pairwise(edges)]
