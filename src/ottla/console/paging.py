"""Long tables, a page at a time: filtered, sorted and cut here, so that no browser gets ten thousand rows. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

R = TypeVar("R")

PER_PAGE = 50
PER_PAGE_MAX = 500

Key = Callable[[Any], Any]


class Page(NamedTuple, Generic[R]):
    items: list[R]
    total: int
    """How many there are with the filter."""
    all: int
    page: int
    pages: int
    per_page: int
    sort: str
    descending: bool
    query: str

    def facts(self) -> dict[str, Any]:
        """Of the page itself, for JSON."""
        return {
            "total": self.total,
            "all": self.all,
            "page": self.page,
            "pages": self.pages,
            "per_page": self.per_page,
            "sort": ("-" if self.descending else "") + self.sort,
            "q": self.query,
        }


def cut(
    rows: Sequence[R],
    fields: Mapping[str, str],
    *,
    text: Callable[[R], str],
    keys: Mapping[str, Key],
    sort: str,
) -> Page[R]:
    """`fields`: q (words that must all be in the text), sort (`-` in front: most first), page, per_page."""
    query = fields.get("q", "").strip()
    words = query.lower().split()
    found = [row for row in rows if all(word in text(row).lower() for word in words)] if words else list(rows)
    asked = fields.get("sort", "") or sort
    descending = asked.startswith("-")
    name = asked.removeprefix("-")
    if name not in keys:
        descending, name = sort.startswith("-"), sort.removeprefix("-")
    key = keys[name]
    known = [row for row in found if key(row) is not None]
    unknown = [row for row in found if key(row) is None]
    known.sort(key=key, reverse=descending)
    per_page = min(max(1, _number(fields.get("per_page"), PER_PAGE)), PER_PAGE_MAX)
    pages = max(1, -(-len(found) // per_page))
    page = min(max(1, _number(fields.get("page"), 1)), pages)
    items = [*known, *unknown][(page - 1) * per_page : page * per_page]
    return Page(items, len(found), len(rows), page, pages, per_page, name, descending, query)


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default
