"""What a request costs its client, of the quotas that count here: bytes produced, and time of the broker.

Bytes fetched and partitions created or deleted are charged where they are known, in the handlers. Nothing here runs
while nobody has a quota.
"""

from collections.abc import Coroutine, Generator
from time import monotonic_ns
from typing import Any, TypeVar

from ottla.broker.handlers.context import Call, NoResponse
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.server.answer import Answer
from ottla.broker.session import Session
from ottla.protocol.apis import ApiKey

T = TypeVar("T")

_NS_PER_MS = 1_000_000
_PRODUCE = int(ApiKey.PRODUCE)


def charge(quotas: ClientQuotas, answer: Answer, size: int) -> int:
    """Charge a request of so many bytes, on which the broker has worked just now. Returns how long its client waits.

    As in Kafka a produce counts with all its bytes when it came, whatever becomes of them, and one that wants no
    answer is not charged the broker's time.
    """
    call, now_ms = answer.call, answer.local_done_ns // _NS_PER_MS
    if call.exempt:
        if quotas.requests is not None:
            quotas.exempt.note(answer.local_done_ns - answer.dispatched_ns, now_ms)
        return 0
    if quotas.produce is not None and call.api_key == _PRODUCE:
        bytes_left = quotas.produce.of(call.session.entity, now_ms)
        if bytes_left is not None:
            call.throttle(bytes_left.charge(size, now_ms))
    if quotas.requests is not None and type(answer.outcome) is not NoResponse:
        _charge_time(quotas, call, answer.local_done_ns - answer.dispatched_ns, now_ms)
    return call.throttle_ms


def note_sending(quotas: ClientQuotas, session: Session, began_ns: int, ended_ns: int) -> None:
    """Sending takes time too. The answer is on its way by then, so this counts for what comes next."""
    if quotas.requests is not None:
        now_ms = ended_ns // _NS_PER_MS
        time_left = quotas.requests.of(session.entity, now_ms)
        if time_left is not None:
            time_left.note(ended_ns - began_ns, now_ms)


async def timed(quotas: ClientQuotas, call: Call, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; the time that it ran, without that for which it waited, is charged."""
    watch = _Stopwatch(work)
    try:
        result: T = await watch
        return result
    finally:
        if quotas.requests is not None:
            now_ms = monotonic_ns() // _NS_PER_MS
            if call.exempt:
                quotas.exempt.note(watch.ran_ns, now_ms)
            else:
                _charge_time(quotas, call, watch.ran_ns, now_ms)


def _charge_time(quotas: ClientQuotas, call: Call, ran_ns: int, now_ms: int) -> None:
    assert quotas.requests is not None
    time_left = quotas.requests.of(call.session.entity, now_ms)
    if time_left is not None:
        call.throttle(time_left.charge(ran_ns, now_ms))


class _Stopwatch(Generator[Any, Any, T]):
    """Runs a coroutine and adds up its steps."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._steps = work.__await__()
        self.ran_ns = 0

    def __await__(self) -> "_Stopwatch[T]":
        return self

    def send(self, value: Any) -> Any:
        began_ns = monotonic_ns()
        try:
            return self._steps.send(value)
        finally:
            self.ran_ns += monotonic_ns() - began_ns

    def throw(self, *error: Any) -> Any:
        began_ns = monotonic_ns()
        try:
            return self._steps.throw(*error)
        finally:
            self.ran_ns += monotonic_ns() - began_ns
