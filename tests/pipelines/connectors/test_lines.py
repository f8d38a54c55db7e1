"""Bytes to lines, however the bytes come in."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.connectors.objects.lines import complete_until, cut, cut_stream

TEXT = st.binary().map(lambda text: text.replace(b"\x00", b"\n").replace(b"\x01", b"\r"))
LINES = st.lists(st.sampled_from([b"a", b"bc", b"", b"\n", b"\r", b"\r\n", b"\xff"])).map(b"".join)


@given(LINES | TEXT, st.lists(st.integers(0, 30)))
def test_blocks_of_any_size_give_the_same_lines(text: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *[edge for edge in cuts if edge < len(text)]})
    blocks = [text[low:high] for low, high in itertools.pairwise(edges)]
    found = [line for lines, _ in cut_stream(blocks) for line in lines]
    assert found == text.splitlines()


@given(LINES)
def test_positions_are_where_lines_begin(text: bytes) -> None:
    lines = cut(text, final=True)
    for line, start in zip(lines.content, lines.starts.tolist(), strict=True):
        assert text[start : start + len(line)] == line
        assert start == 0 or text[start - 1 : start] in (b"\n", b"\r")
    assert lines.used == len(text)


@given(LINES)
def test_an_unfinished_line_waits(text: bytes) -> None:
    lines = cut(text, final=False)
    rest = text[lines.used :]
    assert b"\n" not in rest
    assert rest.count(b"\r") == (1 if rest.endswith(b"\r") else 0)
    assert lines.used == complete_until(text)


def test_a_carriage_return_at_the_end_is_undecided() -> None:
    assert cut(b"a\r", final=False).content == []
    assert cut(b"a\r\n", final=False).content == [b"a"]
    assert cut(b"a\rb", final=False).content == [b"a"]
