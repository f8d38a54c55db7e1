"""What the writing task makes of the text that the plan has for a rejected row."""

import base64
import json
from typing import Any

from ottla.pipelines.runner.dead_letters import MESSAGE_CHARS_MAX, LetterMaker

MAKE = LetterMaker("orders", "orders.dead")


def text(origin: dict[str, Any], **why: str) -> str:
    return json.dumps({"origin": origin, "why": why})


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def headers(letter: dict[str, Any]) -> dict[str, bytes | None]:
    return {header["key"]: header["value"] for header in letter["headers"]}


def test_a_letter_is_the_record_as_it_was_with_headers_that_say_what_happened() -> None:
    origin = {
        "source": "orders", "topic": "in", "partition": 3, "offset": 41, "timestamp": -5, "key": encoded(b"\xff\x00"),
        "value": encoded(b"{oops"), "headers": [{"key": "trace", "value": encoded(b"7")}, {"key": "empty"}],
    }  # fmt: skip
    letter = MAKE(text(origin, step="source orders", error="malformed JSON: {oops"))
    assert (letter["key"], letter["value"], letter["topic"]) == (b"\xff\x00", b"{oops", "orders.dead")
    assert [header["key"] for header in letter["headers"]][:2] == ["trace", "empty"]
    assert headers(letter) == {
        "trace": b"7",
        "empty": None,
        "ottla.error.pipeline": b"orders",
        "ottla.error.step": b"source orders",
        "ottla.error.message": b"malformed JSON: {oops",
        "ottla.error.source": b"orders",
        "ottla.error.topic": b"in",
        "ottla.error.partition": b"3",
        "ottla.error.offset": b"41",
        "ottla.error.timestamp": b"-5",
    }


def test_a_record_without_a_value_stays_without_one_and_a_row_that_was_none_is_its_json() -> None:
    tombstone = MAKE(text({"topic": "in", "headers": []}, step="1 expect", error="no", row='{"a":1}'))
    assert (tombstone["key"], tombstone["value"]) == (None, None)
    row = MAKE(text({"headers": None}, step="1 expect", error="no", row='{"a":1}'))
    assert row["value"] == headers(row)["ottla.error.row"] == b'{"a":1}'


def test_words_are_cut_by_their_letters_and_are_always_text() -> None:
    letter = MAKE(text({}, step="s", error="ä" * (MESSAGE_CHARS_MAX + 5), row="half \ud800"))
    assert headers(letter)["ottla.error.message"] == "ä".encode() * MESSAGE_CHARS_MAX
    assert headers(letter)["ottla.error.row"] == b"half ?"
