"""Fields of records that a role does not get to see, in pages, answers and exports alike.

`ssn` hides every field of that name, however deep, in key and value; `$.card.number` and `key.$.id` one place;
`header.NAME` a header; `@key` and `@value` all of it. A value that is no document cannot be looked into: where fields
of values are hidden, such a value is hidden whole. A search must not find what is hidden either, or it would tell.

Pure: reads no clock and does no I/O.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ottla.console.search.decoding import CHARACTERS_MAX, Decoded
from ottla.console.search.paths import BadPath, Path, Step, read_path
from ottla.console.search.query import Op, Query, Term
from ottla.model.errors import OttlaError

HIDDEN = "•••"
WHOLE_KEY, WHOLE_VALUE = "@key", "@value"


class BadField(OttlaError):
    """A field to hide that is not written as one."""


class HiddenFields(NamedTuple):
    names: frozenset[str] = frozenset()
    paths: tuple[tuple[str, Path], ...] = ()
    """`key` or `value`, and where in it."""
    headers: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    """`key`, `value`."""


class NotShown(OttlaError):
    """A search for what is hidden."""


def parse_fields(fields: Sequence[str]) -> HiddenFields:
    names, paths, headers, whole = set(), [], set(), set()
    for field in fields:
        if field in (WHOLE_KEY, WHOLE_VALUE):
            whole.add(field[1:])
        elif field.startswith("header."):
            headers.add(field.removeprefix("header."))
        elif field.startswith(("$", "key.$", "value.$")):
            paths.append(("key" if field.startswith("key.") else "value", _path(field)))
        elif not field or field.startswith("@"):
            raise BadField(f"`{field}` is no field: write a name, $.path, key.$.path, header.NAME, @key or @value")
        else:
            names.add(field)
    return HiddenFields(frozenset(names), tuple(paths), frozenset(headers), frozenset(whole))


def _path(field: str) -> Path:
    try:
        path, end = read_path(field, field.index("$"))
    except BadPath as error:
        raise BadField(f"`{field}` is no path: {error}") from None
    if end != len(field) or not path:
        raise BadField(f"`{field}` is no path to a field: write $.card.number")
    return path


class Mask:
    """What is hidden in the records of one topic."""

    def __init__(self, fields: HiddenFields) -> None:
        self._fields = fields

    # What is shown.

    def decoded(self, decoded: Decoded, part: str, characters_max: int = CHARACTERS_MAX) -> Decoded:
        """`part` is `key` or `value`."""
        if decoded.kind == "null" or not self._touches(part):
            return decoded
        is_plain = decoded.kind in {"text", "hex"}
        if is_plain and not self._hides_plain(part):
            return decoded
        if is_plain or part in self._fields.whole:
            return Decoded("text", HIDDEN, None, None, decoded.length, False, decoded.schema)
        document = self.document(decoded.document, part)
        text = msgspec.json.encode(document).decode()
        return decoded._replace(document=document, text=text[:characters_max], is_cut=len(text) > characters_max)

    def document(self, document: Any, part: str) -> Any:
        """Another document; the one given stays as it is."""
        paths = [path for where, path in self._fields.paths if where == part]
        return _masked(document, self._fields.names, paths)

    def header(self, name: str, value: Any) -> Any:
        return HIDDEN if name in self._fields.headers and value is not None else value

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A record as `exporting.row_of` makes it."""
        found = dict(row)
        for part in ("key", "value"):
            if row[part] is None or not self._touches(part):
                continue
            if isinstance(row[part], dict | list) and part not in self._fields.whole:
                found[part] = self.document(row[part], part)
            elif self._hides_plain(part):
                found[part] = HIDDEN
                found.pop(f"{part}_encoding", None)
        found["headers"] = [
            {"name": each["name"], "value": HIDDEN}
            if each["name"] in self._fields.headers and each["value"] is not None
            else each
            for each in row["headers"]
        ]
        return found

    def _touches(self, part: str) -> bool:
        return bool(self._fields.names) or self._hides_plain(part)

    def _hides_plain(self, part: str) -> bool:
        """Whether what is no document is hidden whole: a key that is a plain text has no fields of any name."""
        fields = self._fields
        named = part == "value" and bool(fields.names)
        return named or part in fields.whole or any(where == part for where, _ in fields.paths)

    # What is searched.

    def check(self, query: Query) -> None:
        """NotShown if the query could tell something about what is hidden."""
        for term in query.terms:
            if not self._may_ask(term):
                raise NotShown(
                    f"`{term}` looks into fields that are hidden from you; search by other fields with $.path, by "
                    "offset, partition or time"
                )

    def _may_ask(self, term: Term) -> bool:
        fields = self._fields
        if term.where == "header":
            return term.name not in fields.headers
        if term.where == "any":
            return not (self._touches("key") or self._touches("value"))
        if not self._touches(term.where) or (term.path is None and term.op is Op.NULL):
            return True
        if term.path is None:  # who knows a whole key asks for nothing that is hidden
            return term.where == "key" and term.op is Op.EQUALS and not self._hides_plain("key")
        if term.where in fields.whole:
            return False
        path = term.path
        if any(not isinstance(step, str | int) or step in fields.names for step in path):
            return False
        return not any(where == term.where and _overlap(path, hidden) for where, hidden in fields.paths)


def _overlap(path: Path, hidden: Path) -> bool:
    """Whether one leads through the other: then asking for it tells something of what is hidden."""
    return all(_same(own, other) for own, other in zip(path, hidden, strict=False)) and len(path) >= len(hidden)


def _same(own: Step, other: Step) -> bool:
    if isinstance(own, str) and isinstance(other, str):
        return own == other
    # A list counted from the end may mean the same item, and `*` any.
    return not (isinstance(own, int) and isinstance(other, int) and own >= 0 and other >= 0 and own != other)


def _masked(document: Any, names: frozenset[str], paths: Sequence[Path]) -> Any:
    """Documents are no deeper than decoding allows, so this may recurse."""
    if any(not path for path in paths):
        return HIDDEN if document is not None else None
    if isinstance(document, dict):
        return {
            key: (HIDDEN if value is not None else None)
            if key in names
            else _masked(value, names, [path[1:] for path in paths if _leads(path[0], key)])
            for key, value in document.items()
        }
    if isinstance(document, list):
        size = len(document)
        return [
            _masked(value, names, [path[1:] for path in paths if _leads_to_item(path[0], number, size)])
            for number, value in enumerate(document)
        ]
    return document


def _leads(step: Step, key: str) -> bool:
    return step == key if isinstance(step, str) else not isinstance(step, int)


def _leads_to_item(step: Step, number: int, size: int) -> bool:
    if isinstance(step, int):
        return step in (number, number - size)
    return not isinstance(step, str)
