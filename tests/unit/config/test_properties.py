"""Java's .properties syntax."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.config.properties import parse_properties
from ottla.config.setting import ConfigError


def test_separators_comments_and_blanks() -> None:
    text = "# c\n! d = e\n\n  a=1\nb : 2\nc 3\nd\t=\t4 5 \ne\nf=\r\ng=a=b:c\r"
    assert parse_properties(text) == {"a": "1", "b": "2", "c": "3", "d": "4 5 ", "e": "", "f": "", "g": "a=b:c"}


def test_continuations_and_escapes() -> None:
    text = "list=a,\\\n   b,\\\n   c\npath=C:\\\\dir\\\\\nkey\\ with\\=both=x\\ty\\u0041\nlast=1\\"
    assert parse_properties(text) == {"list": "a,b,c", "path": "C:\\dir\\", "key with=both": "x\tyA", "last": "1"}


def test_a_comment_sign_after_a_continuation_is_text() -> None:
    assert parse_properties("a=1\\\n#2\nb=3") == {"a": "1#2", "b": "3"}


def test_the_last_of_a_repeated_name_counts() -> None:
    assert parse_properties("a=1\na=2") == {"a": "2"}


def test_pairs_of_escapes_are_one_character() -> None:
    assert parse_properties("a=\\ud83d\\ude00") == {"a": "😀"}


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_properties("a=1\nb=\\u12")


def escape(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" if not c.isalnum() else c for c in text)


@given(
    st.dictionaries(
        st.text(st.characters(max_codepoint=0xD7FF), min_size=1), st.text(st.characters(max_codepoint=0xD7FF))
    )
)
def test_whatever_is_escaped_comes_back(pairs: dict[str, str]) -> None:
    text = "\n".join(f"{escape(name)}={escape(value)}" for name, value in pairs.items())
    assert parse_properties(text) == pairs


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse_properties(text)
