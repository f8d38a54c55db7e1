"""Requests that took long, each with the parts of its time: a line at WARNING by `kafka.request.slow`.

What a client asked to wait for does not count: records that a fetch waits for, members that a join waits for.
"""

import json
import logging
from collections.abc import Callable

from ottla.broker.server.answer import Answer
from ottla.broker.server.request_log import describe
from ottla.protocol.apis import ApiKey

logger = logging.getLogger("kafka.request.slow")

_WAITING = frozenset({int(key) for key in (ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP)})
_NS_PER_MS = 1_000_000


def slow_log(slow_ms: int) -> Callable[[Answer], None]:
    """Writes a line about answers that took at least this long."""
    slow_ns = slow_ms * _NS_PER_MS

    def note(answer: Answer) -> None:
        took_ns = answer.sent_ns - answer.received_ns
        if answer.call.api_key in _WAITING:
            took_ns -= answer.replied_ns - answer.local_done_ns
        if took_ns >= slow_ns:
            logger.warning("Slow request:%s", json.dumps(describe(answer)))

    return note
