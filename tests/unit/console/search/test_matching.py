"""Filters against a plain model that reads every record, and bytes of batches against the records in them."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.client.fetch import Fetched
from ottla.console.search.batches import Answer, Bounds, Found, Search
from ottla.console.search.decoding import Decoder
from ottla.console.search.matching import Matcher
from ottla.console.search.query import Op, Query, Term, parse_query
from ottla.console.search.windows import NewestFirst, OldestFirst, Waiting
from ottla.protocol.errors import CorruptBatch
from ottla.protocol.records import Codec, NewRecord, encode_batch

Content = bytes | None


def accepts(line: str, key: Content = None, value: Content = None, headers: Any = ()) -> bool:
    found = Decoder().matcher(parse_query(line)).accepts(key, value, headers)
    assert Matcher(parse_query(line), Decoder().document).accepts(key, value, headers) is found
    return found


@pytest.mark.parametrize(
    ("line", "value", "holds"),
    [
        ("$.a=42", {"a": 42}, True),
        ("$.a=42", {"a": 42.0}, True),
        ("$.a=42", {"a": "42"}, True),
        ('$.a="42"', {"a": 42}, False),
        ("$.a=42", {"b": 42}, False),
        ("$.a=true", {"a": True}, True),
        ("$.a=1", {"a": True}, False),
        ("$.a=null", {"a": None}, True),
        ("$.a=null", {}, False),
        ("$.a", {"a": None}, True),
        ("-$.a", {}, True),
        ("$.a>100", {"a": 100.5}, True),
        ("$.a>100", {"a": "9223372036854775807"}, True),
        ("$.a>100", {"a": "x"}, False),
        ("$.day>=2026-01-01", {"day": "2026-01-02T00:00"}, True),
        ("$.a!=5", {"a": 6}, True),
        ("$.a!=5", {"a": 5}, False),
        ('$.a~"da"', {"a": "adam"}, True),
        ("$.a~4", {"a": 142}, True),
        ("$.a~tru", {"a": True}, True),
        ("$.l[*]=3", {"l": [1, 2, 3]}, True),
        ("$.l[-1]=3", {"l": [1, 2, 3]}, True),
        ("$.l[3]", {"l": [1, 2, 3]}, False),
        ("$.l[*].x>2", {"l": [{"x": 1}, {"x": 3}]}, True),
        ("$.*=7", {"q": 7}, True),
        ("$.a.b=1", {"a": [1]}, False),
        ("$=5", 5, True),
    ],
)
def test_paths(line: str, value: Any, holds: bool) -> None:
    assert accepts(line, value=json.dumps(value).encode()) is holds
    assert accepts(line.replace("$", "key.$", 1), key=json.dumps(value).encode()) is holds


def test_texts_that_are_written_with_escapes_are_found() -> None:
    assert accepts('$.a="adam"', value=b'{"a":"\\u0061dam"}')
    assert accepts('$.a="x/y"', value=b'{"a":"x\\/y"}')
    assert accepts('$.a="é"', value=b'{"a":"\\u00e9"}')


def test_what_is_no_document_matches_only_what_is_denied() -> None:
    for value in (None, b"", b"text", b"\xff\xfe", b"[" * 100_000, b'{"a":'):
        assert not accepts("$.a", value=value)
        assert accepts("-$.a", value=value)


def test_headers_that_are_there_twice() -> None:
    headers = (("h", b"1"), ("h", None), ("h", b"two"))
    assert accepts("header.h:tw header.h=1 header.h:null header:h", headers=headers)
    assert not accepts("header.g", headers=headers)
    assert accepts("-header.g:null", headers=headers)


# A plain model: every test spelled out, on documents read by another library.

values = st.recursive(
    st.none() | st.booleans() | st.integers(-50, 50) | st.sampled_from(["a", "ab", "7", "é", "true", "x/y", "\\u"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
contents = st.none() | st.binary(max_size=6) | values.map(json.dumps).map(str.encode)
contents = contents | values.map(lambda value: json.dumps(value, ensure_ascii=False).encode())
headers = st.lists(st.tuples(st.sampled_from(["h", "g"]), st.none() | st.sampled_from([b"a", b"ab"])), max_size=2)
operands = st.sampled_from(["a", "b", "7", "-3", "true", "é", "ab", "x/y", "\\u"])
paths = st.lists(st.sampled_from(["a", "b", 0, -1]), max_size=3).map(tuple)


def _terms(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Term]:
    return st.fixed_dictionaries({"negated": st.booleans(), **fields}).map(lambda found: Term(**found))


terms = st.one_of(
    _terms(where=st.just("any"), op=st.just(Op.CONTAINS), text=operands),
    _terms(where=st.sampled_from(["key", "value"]), op=st.sampled_from([Op.CONTAINS, Op.EQUALS]), text=operands),
    _terms(where=st.sampled_from(["key", "value"]), op=st.just(Op.NULL)),
    _terms(where=st.just("header"), op=st.sampled_from([Op.CONTAINS, Op.EQUALS]), text=operands, name=st.just("h")),
    _terms(where=st.just("header"), op=st.sampled_from([Op.EXISTS, Op.NULL]), name=st.just("h")),
    _terms(
        where=st.sampled_from(["key", "value"]),
        op=st.sampled_from([op for op in Op if op is not Op.EXISTS and op is not Op.NULL]),
        text=operands,
        path=paths,
        literal=st.booleans(),
    ),
    _terms(where=st.sampled_from(["key", "value"]), op=st.sampled_from([Op.EXISTS, Op.NULL]), path=paths),
)


def model(term: Term, key: Content, value: Content, headers: Sequence[tuple[str, Content]]) -> bool:
    return _model(term, key, value, headers) != term.negated


def _model(term: Term, key: Content, value: Content, headers: Sequence[tuple[str, Content]]) -> bool:
    wanted = term.text.encode()
    if term.path is not None:
        data = key if term.where == "key" else value
        try:
            document = json.loads((data or b"").decode(), parse_constant=int)
        except ValueError:
            return False
        for step in term.path:
            try:
                if isinstance(step, str) != isinstance(document, dict) or not isinstance(document, dict | list):
                    return False
                document = document[step]  # type: ignore[index]
            except LookupError:
                return False
        return _compared(term, document)
    if term.where == "header":
        held = [content for name, content in headers if name == term.name]
        if term.op in {Op.EXISTS, Op.NULL}:
            return bool(held) if term.op is Op.EXISTS else None in held
        return any(each == wanted if term.op is Op.EQUALS else wanted in each for each in held if each is not None)
    looked_at = {"key": [key], "value": [value], "any": [key, value]}[term.where]
    if term.op is Op.NULL:
        return looked_at == [None]
    return any(each == wanted if term.op is Op.EQUALS else wanted in each for each in looked_at if each is not None)


def _compared(term: Term, found: Any) -> bool:
    if term.op in {Op.EXISTS, Op.NULL}:
        return term.op is Op.EXISTS or found is None
    if isinstance(found, dict | list) or found is None:
        return False
    as_text = found if isinstance(found, str) else json.dumps(found)
    if term.op is Op.CONTAINS:
        return term.text in as_text
    number = re.fullmatch(r"-?\d+", term.text) and not term.literal
    if term.op is Op.EQUALS:
        lenient = not term.literal and (number or term.text in {"true", "false"})
        return as_text == term.text if lenient or isinstance(found, str) else False
    if number:
        if isinstance(found, bool) or not re.fullmatch(r"-?\d+", as_text):
            return False
        left, right = int(as_text), int(term.text)
    else:
        if not isinstance(found, str):
            return False
        left, right = found, term.text  # type: ignore[assignment]
    return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[term.op.value]


@given(st.lists(terms, max_size=3).map(tuple), contents, contents, headers)
@settings(max_examples=200)
def test_a_matcher_says_what_the_model_says(wanted: Any, key: Any, value: Any, held: Any) -> None:
    expected = all(model(term, key, value, held) for term in wanted)
    assert Matcher(Query(wanted), Decoder().document).accepts(key, value, tuple(held)) == expected
    assert Decoder().matcher(Query(wanted)).accepts(key, value, tuple(held)) == expected


written = st.one_of(
    st.integers(-2000, 2000).map(str),
    st.integers(-2000, 2000).map(lambda number: f'"{number}"'),
    st.floats(-2000, 2000).map(repr),
    st.tuples(st.integers(-99, 99), st.sampled_from(["0", "00", "5", "9" * 20, "0" * 19 + "1"])).map(
        lambda parts: f"{parts[0]}.{parts[1]}"
    ),
    st.sampled_from(["1e3", "-1E3", "0.1e1", "-0", "-0.0", "true", "null", "[7]", '{"n": 7}']),
)


@given(
    written, st.sampled_from(["=", ">", "<", ">=", "<="]), st.integers(-1100, 1100), st.sampled_from(["", " ", "\n\t"])
)
@settings(max_examples=300)
def test_bytes_are_ruled_out_only_where_no_number_matches(text: str, op: str, number: int, space: str) -> None:
    value = f'{{"a":1,{space}"n"{space}:{space}{text}}}'.encode()
    matcher = Decoder().matcher(parse_query(f"$.n{op}{number}"))
    if matcher.rules_out(b"before" + value + b"behind"):
        assert not matcher.accepts(None, value, ())


def test_batches_without_a_number_are_ruled_out() -> None:
    many = b"".join(b'{"id": %d, "amount": %d.5}' % (each, each) for each in range(1000))
    for line, out in (
        ("$.amount>1000000", True), ("$.amount>900", False), ("$.id=999", False), ("$.id=1000", True),
        ("$.amount<-1", True), ("$.amount<1", False), ("-$.id=1000", False), ("$.other=1", True),
    ):  # fmt: skip
        assert Decoder().matcher(parse_query(line)).rules_out(many) is out, line


# Batches.

records = st.builds(
    NewRecord,
    contents,
    contents,
    st.integers(0, 1000),
    headers,
)
codecs = st.sampled_from([Codec.NONE, Codec.LZ4, Codec.ZSTD])


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[bytes], list[Found]]:
    """Batches with gaps between them, and the records that they hold."""
    offset, batches, held = draw(st.integers(0, 5)), [], []
    for content in draw(st.lists(st.lists(records, min_size=1, max_size=5), max_size=6)):
        batches.append(bytes(encode_batch(content, base_offset=offset, codec=draw(codecs))))
        for number, record in enumerate(content):
            found = (0, offset + number, record.timestamp, record.key, record.value, tuple(record.headers))
            held.append(Found(*found))
        offset += len(content) + draw(st.sampled_from([0, 0, 1, 7]))
    return batches, held


@given(logs(), st.lists(terms, max_size=2).map(tuple), st.integers(0, 30), st.integers(0, 40), st.booleans())
@settings(max_examples=100)
def test_a_search_finds_in_bytes_what_the_model_finds_in_records(
    log: tuple[list[bytes], list[Found]], wanted: tuple[Term, ...], start: int, end: int, keep_last: bool
) -> None:
    batches, held = log
    matcher = Decoder().matcher(Query(wanted))
    bounds = Bounds(start, end, 10, 900)
    inside = [each for each in held if start <= each.offset < end]
    expected = [
        each
        for each in inside
        if 10 <= each.timestamp_ms < 900 and all(model(term, each.key, each.value, each.headers) for term in wanted)
    ]
    search = Search(0, matcher, bounds, keep=1000, keep_last=keep_last).go([Answer(b"".join(batches))], True)
    assert search.found == expected
    assert search.scanned == len(inside)
    few = Search(0, matcher, bounds, keep=2, keep_last=keep_last).go([Answer(each) for each in batches], True)
    assert few.found == (expected[-2:] if keep_last else expected[:2])


@given(st.binary(max_size=80), st.integers(0, 5))
def test_broken_records_are_an_error_and_nothing_else(body: bytes, count: int) -> None:
    batch = bytearray(encode_batch([NewRecord(b"k", b"v", 0)])[:61] + body)
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    for line in ("", "k", "header.a:b"):
        search = Search(0, Matcher(parse_query(line), Decoder().document), Bounds(0, 99), keep=9, keep_last=True)
        with contextlib.suppress(CorruptBatch):
            search.go([Answer(bytes(batch))], True)


# Windows.


class Log:
    """Answers as a broker does: whole batches from the one that holds the offset on, a few at a time."""

    def __init__(self, batches: list[bytes], at_once: int) -> None:
        self._batches, self._at_once = batches, at_once

    async def read(self, start: int, end: int) -> AsyncIterator[Fetched]:
        while start < end:
            first = [n for n, each in enumerate(self._batches) if _next_offset(each) > start]
            if not first:
                return
            some = self._batches[first[0] : first[0] + self._at_once]
            yield Fetched(start, b"".join(some), [], 1000, 1000, 0)
            start = _next_offset(some[-1])


def _next_offset(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big") + int.from_bytes(batch[23:27], "big") + 1


@given(logs(), st.integers(1, 3), st.integers(0, 20), st.integers(0, 45), st.booleans(), st.integers(1, 4))
def test_windows_cover_every_offset_once(
    log: tuple[list[bytes], list[Found]], at_once: int, start: int, end: int, backwards: bool, few: int
) -> None:
    batches, held = log

    async def go() -> list[Found]:
        make = NewestFirst if backwards else OldestFirst
        reader = make(0, lambda size: Log(batches, at_once), Bounds(start, max(start, end)), reads_ahead=few == 1)
        if isinstance(reader, NewestFirst):
            reader._records = few
        found = []
        while reader.left:
            before = reader.left
            window = await reader.next_window()
            assert reader.left < before
            matcher = Matcher(Query(), Decoder().document)
            searched = Search(0, matcher, window.bounds, keep=1000, keep_last=backwards).go(window.answers, True)
            found += searched.found[::-1] if backwards else searched.found
        await reader.close()
        return found

    inside = [each for each in held if start <= each.offset < end]
    assert asyncio.run(go()) == (inside[::-1] if backwards else inside)


def test_matches_wait_for_partitions_that_may_come_before_them() -> None:
    waiting = Waiting(newest_first=True)
    waiting.add([Found(0, 1, 50, None, b"", ()), Found(0, 0, 40, None, b"", ())])
    assert waiting.take([10, None]) == [], "one partition has not been looked at"
    assert [each.timestamp_ms for each in waiting.take([10, 45])] == [50]
    assert [each.timestamp_ms for each in waiting.take([])] == [40]
    assert waiting.rank(None) < waiting.rank(50) < waiting.rank(40)
    oldest = Waiting(newest_first=False)
    oldest.add([Found(0, 1, 50, None, b"", ()), Found(0, 0, 40, None, b"", ())])
    assert [each.timestamp_ms for each in oldest.take([45])] == [40]
