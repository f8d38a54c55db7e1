"""Which clients are to push which of their metrics, how often (KIP-714). Pure.

A subscription names metrics by prefix, an interval, and which clients it is for; a client pushes what all that are for
it ask for, at the shortest of their intervals.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from ottla.model.errors import OttlaError

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
NAMES = (METRICS, INTERVAL, MATCH)
ALL = "*"
INTERVAL_MS_DEFAULT = 300_000
INTERVAL_MS_MIN, INTERVAL_MS_MAX = 100, 3_600_000
SELECTORS = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class BadSubscription(OttlaError):
    """What a subscription says cannot be done."""


class Subscription(NamedTuple):
    metrics: tuple[str, ...]
    interval_ms: int
    match: Mapping[str, re.Pattern[str]]

    def is_for(self, client: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(client.get(selector, "")) for selector, pattern in self.match.items())


class Wanted(NamedTuple):
    """What one client is to push."""

    metrics: tuple[str, ...]
    interval_ms: int
    id: int


def parse(configs: Mapping[str, str]) -> Subscription:
    """BadSubscription says what is wrong."""
    for name in configs:
        if name not in NAMES:
            raise BadSubscription(f"Unknown client metrics configuration: {name}; there are {', '.join(NAMES)}")
    text = configs.get(INTERVAL, str(INTERVAL_MS_DEFAULT))
    if not text.isdecimal() or not INTERVAL_MS_MIN <= int(text) <= INTERVAL_MS_MAX:
        raise BadSubscription(
            f"Invalid value {text} for {INTERVAL}, interval must be between {INTERVAL_MS_MIN} and {INTERVAL_MS_MAX}"
        )
    return Subscription(_listed(configs.get(METRICS, "")), int(text), _selectors(configs.get(MATCH, "")))


def _listed(text: str) -> tuple[str, ...]:
    return tuple(word for part in text.split(",") if (word := part.strip()))


def _selectors(text: str) -> dict[str, re.Pattern[str]]:
    found = {}
    for part in _listed(text):
        name, equals, pattern = (each.strip() for each in part.partition("="))
        if not equals or name not in SELECTORS:
            raise BadSubscription(f"Illegal client matching pattern: {part}; selectors are {', '.join(SELECTORS)}")
        try:
            found[name] = re.compile(pattern)
        except re.error as error:
            raise BadSubscription(f"Illegal client matching pattern: {part}: {error}") from None
    return found


def wanted_of(client: Mapping[str, str], subscriptions: Mapping[str, Subscription]) -> Wanted:
    """What a client is to push. Its id tells one set of metrics from another."""
    mine = [subscription for subscription in subscriptions.values() if subscription.is_for(client)]
    metrics = tuple(sorted({metric for subscription in mine for metric in subscription.metrics}))
    if ALL in metrics:
        metrics = (ALL,)
    interval_ms = min((subscription.interval_ms for subscription in mine), default=INTERVAL_MS_DEFAULT)
    marks = f"{client.get('client_instance_id')} {metrics} {interval_ms}"
    return Wanted(metrics, interval_ms, crc32(marks.encode()) & 0x7FFFFFFF)
