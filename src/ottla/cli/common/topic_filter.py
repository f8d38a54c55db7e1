"""Topics chosen by a pattern, as Kafka's tools take it: a regular expression for the whole name, commas for 'or'."""

import re
from collections.abc import Iterable
from typing import TypeVar

from ottla.cli.common.output import CommandError
from ottla.client.admin import TopicListing
from ottla.model.names import INTERNAL_TOPICS

T = TypeVar("T")


class TopicPattern:
    """Quotes around the expression and blanks in it do not count."""

    def __init__(self, expression: str) -> None:
        text = expression.strip().replace(",", "|").replace(" ", "").strip("\"'")
        try:
            self._pattern = re.compile(text)
        except re.error as error:
            raise CommandError(f"`{expression}` is not a regular expression for topics: {error}") from None

    def matches(self, topic: str) -> bool:
        return self._pattern.fullmatch(topic) is not None


def choose_topics(
    topics: Iterable[TopicListing], expression: str | None, *, exclude_internal: bool = False
) -> list[TopicListing]:
    """The topics whose names match, all of them without an expression."""
    pattern = TopicPattern(expression) if expression is not None else None
    return [
        topic
        for topic in topics
        if (pattern is None or pattern.matches(topic.name)) and not (exclude_internal and is_internal(topic))
    ]


def is_internal(topic: TopicListing) -> bool:
    return topic.internal or topic.name in INTERNAL_TOPICS
