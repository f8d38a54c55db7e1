"""A query as a test of one record: cheap looks at the bytes first, documents only where the bytes could match.

Pure: what turns bytes into a document is handed in.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from ottla.console.search.partial import candidates_of
from ottla.console.search.paths import find
from ottla.console.search.query import Op, Query, Term
from ottla.console.search.ruling_out import number_pattern

Headers = Sequence[tuple[str, bytes | None]]
Part = str
"""`key` or `value`."""
ToDocument = Callable[[bytes, Part, Headers], Any]
"""The document that bytes are; NO_DOCUMENT if they are none."""
Test = Callable[[bytes | None, bytes | None, Headers], bool]


class _NoDocument:
    def __repr__(self) -> str:
        return "NO_DOCUMENT"


NO_DOCUMENT = _NoDocument()

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_CHARACTERS_MAX = 400
_ALWAYS_AS_IT_IS = re.compile(r"[A-Za-z0-9 _.,:;@#$%()+*-]+")
"""Characters that JSON has no short escape for: they stand in the bytes as they are, or as \\u and digits."""

_OF_NUMBERS = frozenset("0123456789.e+-infatrulse")
"""What numbers, true and false may be shown with."""


class Matcher:
    """`needles` are bytes that every record has in it that can match: who has a whole batch looks for them first."""

    def __init__(self, query: Query, to_document: ToDocument | None) -> None:
        """Without `to_document` there is no registry: what is no JSON is no document."""
        plain = [term for term in query.terms if term.path is None]
        pathed = [term for term in query.terms if term.path is not None]
        self.needles = tuple(_needles(plain))
        self.tests: tuple[Test, ...] = (
            *(_plain_test(term) for term in sorted(plain, key=lambda term: term.negated)),
            *_path_tests(pathed, to_document),
        )
        self._texts = tuple(_texts(pathed)) if to_document is None else ()
        patterns = [number_pattern(term) for term in pathed] if to_document is None else []
        self._numbers = tuple(pattern for pattern in patterns if pattern is not None)

    def rules_out(self, payload: bytes) -> bool:
        """Whether none of the records that lie in these bytes can match: what a path has to find is nowhere in them."""
        absent = any(text not in payload for text in self._texts) or any(
            pattern.search(payload) is None for pattern in self._numbers
        )
        return absent and b"\\u" not in payload

    def accepts(self, key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        return all(test(key, value, headers) for test in self.tests)


def _needles(terms: Sequence[Term]) -> list[bytes]:
    """The longest first: it is the rarest, as a rule."""
    found = []
    for term in terms:
        if not term.negated:
            found += [each.encode() for each in (term.name, term.text) if each]
    return sorted(dict.fromkeys(found), key=len, reverse=True)


def _plain_test(term: Term) -> Test:
    if term.where == "header":
        test = _header_test(term)
    elif term.op is Op.NULL:
        test = _is_null(term)
    else:
        test = _bytes_test(term)
    if not term.negated:
        return test
    return lambda key, value, headers: not test(key, value, headers)


def _is_null(term: Term) -> Test:
    if term.where == "key":
        return lambda key, value, headers: key is None
    return lambda key, value, headers: value is None


def _bytes_test(term: Term) -> Test:
    wanted = term.text.encode()
    match term.where, term.op:
        case "key", Op.EQUALS:
            return lambda key, value, headers: key == wanted
        case "value", Op.EQUALS:
            return lambda key, value, headers: value == wanted
        case "key", _:
            return lambda key, value, headers: key is not None and wanted in key
        case "value", _:
            return lambda key, value, headers: value is not None and wanted in value
    return lambda key, value, headers: (value is not None and wanted in value) or (key is not None and wanted in key)


def _header_test(term: Term) -> Test:
    """A header may be there several times: one that fits is enough."""
    wanted, name = term.text.encode(), term.name
    if term.op is Op.EXISTS:
        return lambda key, value, headers: any(each == name for each, _ in headers)
    if term.op is Op.NULL:
        return lambda key, value, headers: any(each == name and held is None for each, held in headers)
    if term.op is Op.EQUALS:
        return lambda key, value, headers: any(each == name and held == wanted for each, held in headers)
    return lambda key, value, headers: any(
        each == name and held is not None and wanted in held for each, held in headers
    )


def _path_tests(terms: Sequence[Term], to_document: ToDocument | None) -> list[Test]:
    """One test for all paths into the value, one for those into the key: each is read once."""
    tests = []
    for part in ("value", "key"):
        own = [term for term in terms if term.where == part]
        if own:
            test = _json_test(part, own) if to_document is None else _document_test(part, own, to_document)
            tests.append(test)
    return tests


def _document_test(part: Part, terms: Sequence[Term], to_document: ToDocument) -> Test:
    compared = [(term.path or (), _comparison(term), term.negated) for term in terms]
    impossible = _impossible_test(terms)
    only_negated = all(term.negated for term in terms)

    def test(key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        data = value if part == "value" else key
        if data is None or (impossible is not None and not headers and impossible(data)):
            return only_negated
        document = to_document(data, part, headers)
        if document is NO_DOCUMENT:
            return only_negated
        return all(any(map(holds, find(document, path))) != negated for path, holds, negated in compared)

    return test


def _json_test(part: Part, terms: Sequence[Term]) -> Test:
    """As `_document_test`, where only JSON is a document."""
    compared = [(_comparison(term), term.negated) for term in terms]
    candidates = candidates_of([term.path or () for term in terms])
    impossible = _impossible_test(terms)
    only_negated = all(term.negated for term in terms)
    is_value = part == "value"

    def test(key: bytes | None, value: bytes | None, headers: Headers) -> bool:
        data = value if is_value else key
        if data is None or (impossible is not None and impossible(data)):
            return only_negated
        found = candidates(data)
        if found is None:
            return only_negated
        for values, (holds, negated) in zip(found, compared, strict=True):
            for each in values:
                if holds(each):
                    if negated:
                        return False
                    break
            else:
                if not negated:
                    return False
        return True

    return test


def _impossible_test(terms: Sequence[Term]) -> Callable[[bytes], bool] | None:
    """Whether bytes cannot be a document that matches, seen without reading it.

    A text that a path has to equal or contain stands in JSON as it is, unless it is written with \\u. Values framed for
    a registry (they begin with byte 0 or 1, or a header says which schema) have enums in them, whose names are not in
    the bytes.
    """
    needles = _texts(terms)
    if not needles:
        return None

    def impossible(data: bytes) -> bool:
        return data[:1] > b"\x01" and b"\\u" not in data and not all(needle in data for needle in needles)

    return impossible


def _texts(terms: Sequence[Term]) -> list[bytes]:
    found = []
    for term in terms:
        if not term.negated and _is_of_texts_only(term):
            runs = _ALWAYS_AS_IT_IS.findall(term.text)
            if runs:
                found.append(max(runs, key=len).encode())
    return found


def _is_of_texts_only(term: Term) -> bool:
    if term.op is Op.CONTAINS:
        return not _OF_NUMBERS.issuperset(term.text)
    return term.op is Op.EQUALS and (term.literal or _number(term.text) is None)


def _number(text: str) -> int | float | None:
    if len(text) > _NUMBER_CHARACTERS_MAX or not (found := _NUMBER.fullmatch(text)):
        return None
    return float(text) if found[2] or found[3] else int(text)


def _comparison(term: Term) -> Callable[[Any], bool]:
    """Of a value that the path leads to. A number may also be written as a text, as Protobuf does with long ones."""
    text, number = term.text, None if term.literal else _number(term.text)
    match term.op:
        case Op.EXISTS:
            return lambda found: True
        case Op.NULL:
            return lambda found: found is None
        case Op.CONTAINS:
            return lambda found: text in shown(found)
        case Op.EQUALS:
            return _equality(term, number)
    compare = _COMPARE[term.op]
    if number is not None:
        return _number_comparison(compare, number)
    return lambda found: isinstance(found, str) and compare(found, text)


def _number_comparison(compare: Callable[[Any, Any], bool], number: float) -> Callable[[Any], bool]:
    def holds(found: Any) -> bool:
        if type(found) is float or type(found) is int:  # no bool, and nothing to convert
            return compare(found, number)
        own = _number_of(found)
        return own is not None and compare(own, number)

    return holds


def _equality(term: Term, number: int | float | None) -> Callable[[Any], bool]:
    text = term.text
    if number is not None:
        return lambda found: found == text if isinstance(found, str) else _number_of(found) == number
    if not term.literal and text in {"true", "false"}:
        wanted = text == "true"
        return lambda found: found is wanted or found == text
    return lambda found: isinstance(found, str) and found == text


def _number_of(found: Any) -> int | float | None:
    if isinstance(found, bool):
        return None
    if isinstance(found, int | float):
        return found
    return _number(found) if isinstance(found, str) else None


def shown(found: Any) -> str:
    """A single value as a text to look into; of lists and objects nothing is contained, their items are."""
    if isinstance(found, str):
        return found
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found) if isinstance(found, int | float) else ""


_COMPARE: dict[Op, Callable[[Any, Any], bool]] = {
    Op.LESS: operator.lt,
    Op.AT_MOST: operator.le,
    Op.GREATER: operator.gt,
    Op.AT_LEAST: operator.ge,
}
