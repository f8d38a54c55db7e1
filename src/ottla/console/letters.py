"""Dead letters: where a record came from and why it is here, by the headers that systems put on them. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.console.search.batches import Found

Headers = Sequence[tuple[str, bytes | None]]

OWN_PREFIX = "ottla.error."
CONNECT_PREFIX = "__connect.errors."
SPRING_PREFIX = "kafka_dlt-"
PREFIXES = (OWN_PREFIX, CONNECT_PREFIX, SPRING_PREFIX)
REPLAYED = ".replayed"
"""What was sent back is noted in a topic of this name, as `ottla pipeline replay-dead-letters` does."""

_TOPIC = ("ottla.error.topic", "__connect.errors.topic", "kafka_dlt-original-topic", "original-topic")
_PARTITION = ("ottla.error.partition", "__connect.errors.partition", "original-partition")
_OFFSET = ("ottla.error.offset", "__connect.errors.offset", "original-offset")
_STEP = ("ottla.error.step", "__connect.errors.stage", "kafka_dlt-exception-fqcn")
_MESSAGE = ("ottla.error.message", "__connect.errors.exception.message", "kafka_dlt-exception-message", "error")
_PIPELINE = ("ottla.error.pipeline", "__connect.errors.connector.name", "kafka_dlt-original-consumer-group")
MESSAGE_CHARACTERS = 2_000
KIND_CHARACTERS = 120


class Letter(NamedTuple):
    partition: int
    offset: int
    timestamp_ms: int
    topic: str | None
    """Where it came from; None: it cannot be sent back."""
    source_partition: int | None
    source_offset: int | None
    pipeline: str
    step: str
    message: str
    sent: bool = False

    @property
    def place(self) -> str:
        return f"{self.partition}:{self.offset}"

    @property
    def kind(self) -> str:
        """By what letters are counted together: the step, and the beginning of the message."""
        first = self.message.splitlines()[0] if self.message else "no message"
        return f"{self.step}: {first[:KIND_CHARACTERS]}" if self.step else first[:KIND_CHARACTERS]


def letter_of(found: Found) -> Letter:
    return Letter(
        found.partition,
        found.offset,
        found.timestamp_ms,
        _text(found.headers, _TOPIC) or None,
        _number(found.headers, _PARTITION),
        _number(found.headers, _OFFSET),
        _text(found.headers, _PIPELINE),
        _text(found.headers, _STEP),
        _text(found.headers, _MESSAGE)[:MESSAGE_CHARACTERS],
    )


def original_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Those that the record had before it became a letter."""
    return [(name, value) for name, value in headers if not name.startswith(PREFIXES)]


def _text(headers: Headers, names: Sequence[str]) -> str:
    """The last of its name: an original record may have been a dead letter before."""
    for wanted in names:
        for name, value in reversed(headers):
            if name == wanted and value is not None:
                return value.decode(errors="replace")
    return ""


def _number(headers: Headers, names: Sequence[str]) -> int | None:
    text = _text(headers, names)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def looks_like_letters(topic: str) -> bool:
    """By its name, where no driver says so."""
    name = topic.lower().replace("_", "-").replace(".", "-")
    parts = name.split("-")
    return not topic.endswith(REPLAYED) and (
        "dead-letter" in name or "dlq" in parts or "dlt" in parts or "dead" in parts
    )
