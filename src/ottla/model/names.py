"""Names of things: topics, partitions, topic ids."""

import base64
import os
import re
import uuid
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode

TOPIC_NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})

NO_TOPIC_ID = uuid.UUID(int=0)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION with the reason if Kafka would refuse this name."""
    reason = None
    if not name:
        reason = "a topic name cannot be empty"
    elif name in (".", ".."):
        reason = "a topic name cannot be '.' or '..'"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = f"a topic name has at most {TOPIC_NAME_LENGTH_MAX} characters, this one has {len(name)}"
    elif not _LEGAL.fullmatch(name):
        reason = f"topic name {name!r} may only use letters, digits, '.', '_' and '-'"
    if reason:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def new_topic_id(random_bytes: Callable[[int], bytes] = os.urandom) -> uuid.UUID:
    """A random id whose text form does not begin with '-', which tools would take for a flag."""
    while True:
        candidate = uuid.UUID(bytes=random_bytes(16), version=4)
        if not format_topic_id(candidate).startswith("-"):
            return candidate


def format_topic_id(topic_id: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()


def parse_topic_id(text: str) -> uuid.UUID:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers under their topics, the shape of most requests."""
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    return topics
