"""The search line: what it means, what is wrong with it and where, and that its text can be shared."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.search.paths import EACH
from ottla.console.search.query import (
    LIMIT_MAX,
    LINE_CHARACTERS_MAX,
    BadQuery,
    Op,
    Query,
    Term,
    parse_query,
    write_time,
)

JANUARY = 1_767_225_600_000


@pytest.mark.parametrize(
    ("line", "terms"),
    [
        ("", ()),
        ("order paid", (Term("any", Op.CONTAINS, "order"), Term("any", Op.CONTAINS, "paid"))),
        ("order AND paid", (Term("any", Op.CONTAINS, "order"), Term("any", Op.CONTAINS, "paid"))),
        ('"two words"', (Term("any", Op.CONTAINS, "two words"),)),
        ("http://x/y?a=b", (Term("any", Op.CONTAINS, "http://x/y?a=b"),)),
        ("key:abc", (Term("key", Op.CONTAINS, "abc"),)),
        ("key=abc", (Term("key", Op.EQUALS, "abc"),)),
        ("key!=abc", (Term("key", Op.EQUALS, "abc", negated=True),)),
        ('value:"two words"', (Term("value", Op.CONTAINS, "two words"),)),
        ("value:null", (Term("value", Op.NULL),)),
        ('value:"null"', (Term("value", Op.CONTAINS, "null"),)),
        ("-value:null", (Term("value", Op.NULL, negated=True),)),
        ("NOT x", (Term("any", Op.CONTAINS, "x", negated=True),)),
        ("NOT key!=x", (Term("key", Op.EQUALS, "x"),)),
        ("header:trace", (Term("header", Op.EXISTS, name="trace"),)),
        ("header.trace", (Term("header", Op.EXISTS, name="trace"),)),
        ("header.a-b.c:x", (Term("header", Op.CONTAINS, "x", "a-b.c"),)),
        ('header."a b"=null', (Term("header", Op.NULL, name="a b"),)),
        ("$.order.id=42", (Term("value", Op.EQUALS, "42", path=("order", "id"), literal=False),)),
        ("$.amount>100", (Term("value", Op.GREATER, "100", path=("amount",), literal=False),)),
        ('$.user.name~"ad"', (Term("value", Op.CONTAINS, "ad", path=("user", "name")),)),
        ("$.a[*][-1].b<=x", (Term("value", Op.AT_MOST, "x", path=("a", EACH, -1, "b"), literal=False),)),
        ('$["a.b"]=null', (Term("value", Op.NULL, path=("a.b",)),)),
        ("key.$.id", (Term("key", Op.EXISTS, path=("id",)),)),
        ("value.$.id", (Term("value", Op.EXISTS, path=("id",)),)),
    ],
)
def test_conditions(line: str, terms: tuple[Term, ...]) -> None:
    assert parse_query(line).terms == terms


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("partition:2,0,2", Query(partitions=(0, 2))),
        ("offset>=100 offset<200", Query(offset_from=100, offset_to=200)),
        ("offset>100 offset<=200", Query(offset_from=101, offset_to=201)),
        ("offset:7", Query(offset_from=7, offset_to=8)),
        ("from:2026-01-01T00:00 to:2026-01-02", Query(time_from_ms=JANUARY, time_to_ms=JANUARY + 86_400_000)),
        ("from:2026-01-01T02:00+02:00", Query(time_from_ms=JANUARY)),
        (f"from:{JANUARY}", Query(time_from_ms=JANUARY)),
        ("since:15m", Query(since_ms=900_000)),
        ("order:oldest limit:100", Query(order="oldest", limit=100)),
    ],
)
def test_bounds(line: str, query: Query) -> None:
    assert parse_query(line) == query


def test_since_is_counted_back_from_when_it_is_asked() -> None:
    assert parse_query("since:1s").times(10_000) == (9_000, None)
    assert parse_query(f"since:1s from:{JANUARY} to:{JANUARY + 5}").times(10_000) == (JANUARY, JANUARY + 5)
    assert Query().times(10_000) == (None, None)


@pytest.mark.parametrize(
    ("line", "position", "expected"),
    [
        ("vlaue:x", 0, "`value`, not `vlaue`"),
        ("x key:", 6, "a text after `key:`"),
        ("key>3", 3, "one of : ~ = != after `key`"),
        ("offset~3", 6, "one of"),
        ("offset>x", 7, "an offset"),
        ("offset<9 offset<8", 16, "one lower and one upper bound"),
        ('x "abc', 6, 'the closing " of what begins at character 3'),
        ('"\\q"', 0, "a text in quotes"),
        ("a OR b", 2, "there is no OR"),
        ("a -", 3, "what is not to be found"),
        ("- a", 1, "what is not to be found"),
        ("--a", 1, "what is not to be found"),
        ("NOT", 3, "what is not to be found"),
        ("-limit:3", 0, "bounds have no opposite"),
        ("$.", 2, "the name of a field"),
        ("$.a[x]", 4, "a number, *"),
        ("$.a[1", 5, "`]`"),
        ("$.a=", 4, "a number, true, false"),
        ("$.a=b$", 0, ""),
        ('key:"a"b', 7, "a space before the next"),
        ('ab"c"', 2, "a space before a text in quotes"),
        ("order:up", 6, "newest or oldest"),
        ("limit:0", 6, "a number from 1"),
        (f"limit:{LIMIT_MAX + 1}", 6, "a number from 1"),
        ("limit:1 limit:2", 8, "`limit` once"),
        ("partition:0,x", 10, "numbers such as 0,2"),
        ("from:yesterday", 5, "a time such as"),
        ("since:5", 6, "a duration such as"),
        ("x" * (LINE_CHARACTERS_MAX + 1), LINE_CHARACTERS_MAX, "at most"),
        ("a \ud800", 2, "UTF-8"),
        (" ".join("abcdefg" for _ in range(51)), 400, "at most 50 conditions"),
    ],
)
def test_what_is_wrong_and_where(line: str, position: int, expected: str) -> None:
    if not expected:
        parse_query(line)
        return
    with pytest.raises(BadQuery) as raised:
        parse_query(line)
    assert raised.value.position == position
    assert expected in raised.value.expected
    assert f"at character {position + 1}:" in str(raised.value)


texts = st.text(st.characters(codec="utf-8"), max_size=12)
words = texts.filter(bool) | st.sampled_from(["NOT", "null", "-5", "a b", 'q"', "header.x", "key:a", "$.a", "OR"])
steps = st.one_of(texts, st.integers(-99, 99), st.just(EACH), st.sampled_from(["a", "a.b", "*", "x y"]))
paths = st.lists(steps, max_size=4).map(tuple)
bare = st.from_regex(r"[a-z0-9.+-]{1,8}", fullmatch=True).filter(lambda text: text != "null")
orders = st.sampled_from([Op.LESS, Op.AT_MOST, Op.GREATER, Op.AT_LEAST, Op.EQUALS, Op.CONTAINS])
parts = st.sampled_from(["key", "value"])


def _terms(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Term]:
    made = st.fixed_dictionaries({"negated": st.booleans(), **fields})
    return made.map(lambda found: Term(**found))


ANY, HEADER = st.just("any"), st.just("header")
contents = st.sampled_from([Op.CONTAINS, Op.EQUALS])
presence = st.sampled_from([Op.EXISTS, Op.NULL])
terms = st.one_of(
    _terms(where=ANY, op=st.just(Op.CONTAINS), text=texts),
    _terms(where=parts, op=contents, text=words),
    _terms(where=parts, op=st.just(Op.NULL)),
    _terms(where=HEADER, op=contents, text=words, name=words),
    _terms(where=HEADER, op=presence, name=texts),
    _terms(where=parts, op=orders, text=words, path=paths),
    _terms(where=parts, op=orders, text=bare, path=paths, literal=st.just(False)),
    _terms(where=parts, op=presence, path=paths),
)
numbers = st.none() | st.integers(0, 2**62)
times = st.none() | st.integers(0, 253_402_300_799_999)
queries = st.builds(
    Query,
    st.lists(terms, max_size=5).map(tuple),
    st.none() | st.sets(st.integers(0, 2**31 - 1), min_size=1, max_size=5).map(lambda found: tuple(sorted(found))),
    numbers,
    numbers,
    times,
    times,
    st.none() | st.integers(1, 10**11),
    st.sampled_from(["newest", "oldest"]),
    st.none() | st.integers(1, LIMIT_MAX),
)


@given(queries)
def test_the_text_of_a_query_reads_as_the_same_query(query: Query) -> None:
    assert parse_query(str(query)) == query


@given(st.text(max_size=40) | st.text('$.[]"\\-:=<>!~ NOTkeyvalueheader012*', max_size=40))
def test_any_line_is_read_or_refused_with_a_place(line: str) -> None:
    place = 0
    try:
        query = parse_query(line)
    except BadQuery as error:
        place = error.position
    else:
        assert parse_query(str(query)) == query
    assert 0 <= place <= len(line)


def test_times_are_written_as_they_are_read() -> None:
    assert write_time(JANUARY + 1) == "2026-01-01T00:00:00.001Z"


def test_every_line_of_the_page_is_understood() -> None:
    page = Path(__file__).parents[4] / "docs" / "console-search.md"
    rows = [line.split("|")[1] for line in page.read_text().splitlines() if line.startswith("| `")]
    lines = [found for row in rows for found in re.findall(r"`([^`]+)`", row)]
    assert len(lines) > 20
    for line in lines:
        query = parse_query(line)
        assert query != Query()
        assert parse_query(str(query)) == query
