"""How long requests take, part by part: told of answers, added to plain integers, folded once in a while.

`note` runs for most requests, or for one in 32 of many, and is written out for that: no call, no object, and a
part that took no time is not recorded at all, since how many there were of those follows from the total.
"""

from collections.abc import Iterator

from ottla.broker.server.answer import Answer
from ottla.protocol.apis import API, ApiKey
from ottla.telemetry.declared import network
from ottla.telemetry.histogram import VALUE_MAX, Histogram
from ottla.telemetry.metric import Distribution, Row
from ottla.telemetry.registry import Telemetry

UNIT_BITS = 10
"""Times are kept in units of 1,024 ns."""
_UNIT_MS = (1 << UNIT_BITS) / 1_000_000
_FETCH = int(ApiKey.FETCH)
_FOLLOWER = -1
_NAMES = {_FETCH: "FetchConsumer", _FOLLOWER: "FetchFollower"}

METRICS = (
    network.TOTAL_TIME,
    network.QUEUE_TIME,
    network.LOCAL_TIME,
    network.REMOTE_TIME,
    network.THROTTLE_TIME,
    network.RESPONSE_QUEUE_TIME,
    network.RESPONSE_SEND_TIME,
    network.REQUEST_BYTES,
)


class Parts:
    """The histograms of one kind of request."""

    __slots__ = ("histograms", "local", "queue", "remote", "response_queue", "send", "size", "throttle", "total")

    def __init__(self) -> None:
        self.histograms = (*(Histogram(_UNIT_MS) for _ in METRICS[:-1]), Histogram())
        (
            self.total, self.queue, self.local, self.remote, self.throttle, self.response_queue, self.send, self.size,
        ) = (histogram.counts for histogram in self.histograms)  # fmt: skip

    def complete(self) -> None:
        """Parts that took no time were not recorded: there are as many values of each part as there are requests."""
        answered = sum(self.total)
        for histogram in self.histograms[1:]:
            histogram.counts[0] += answered - sum(histogram.counts)

    def fold(self) -> None:
        self.complete()
        for histogram in self.histograms:
            histogram.fold()

    def read(self) -> tuple[Distribution, ...]:
        self.complete()
        return tuple(histogram.read() for histogram in self.histograms)


class RequestTimes:
    def __init__(self) -> None:
        self._parts: dict[int, Parts] = {}

    def note(self, answer: Answer) -> None:
        """One answer has left."""
        call = answer.call
        key = call.api_key
        if key == _FETCH and call.exempt:
            key = _FOLLOWER
        parts = self._parts.get(key)
        if parts is None:
            parts = self._parts[key] = Parts()
        weight = answer.weight
        received, dispatched, done = answer.received_ns, answer.dispatched_ns, answer.local_done_ns
        replied, sending, sent = answer.replied_ns, answer.sending_ns, answer.sent_ns
        try:
            value = (sent - received) >> 10
            if value < 64:
                parts.total[value] += weight
            else:
                shift = value.bit_length() - 6
                parts.total[(shift << 5) + (value >> shift)] += weight
            value = (done - dispatched) >> 10
            if value < 64:
                parts.local[value] += weight
            else:
                shift = value.bit_length() - 6
                parts.local[(shift << 5) + (value >> shift)] += weight
            value = (sending - replied) >> 10
            if value < 64:
                parts.response_queue[value] += weight
            else:
                shift = value.bit_length() - 6
                parts.response_queue[(shift << 5) + (value >> shift)] += weight
            value = (sent - sending) >> 10
            if value < 64:
                parts.send[value] += weight
            else:
                shift = value.bit_length() - 6
                parts.send[(shift << 5) + (value >> shift)] += weight
            value = answer.size
            shift = value.bit_length() - 6
            parts.size[value if shift <= 0 else (shift << 5) + (value >> shift)] += weight
        except IndexError:
            parts.histograms[0].record(VALUE_MAX, weight)
        if dispatched != received:
            parts.histograms[1].record((dispatched - received) >> 10, weight)
        if replied != done:
            parts.histograms[3].record((replied - done) >> 10, weight)
        if call.throttle_ms:
            parts.histograms[4].record(call.throttle_ms * 1_000_000 >> 10, weight)

    def fold(self) -> Iterator[None]:
        """An interval is over. In steps: others may have their turn in between."""
        for parts in tuple(self._parts.values()):
            parts.fold()
            yield

    def show(self, telemetry: Telemetry) -> None:
        telemetry.observe_together(METRICS, self._read)

    def _read(self) -> Iterator[Row]:
        for key, parts in tuple(self._parts.items()):
            yield (_NAMES.get(key) or API[ApiKey(key)].name,), parts.read()
        fetches = [self._parts[key] for key in (_FETCH, _FOLLOWER) if key in self._parts]
        if fetches:
            yield ("Fetch",), _together(fetches)


def _together(all_parts: list[Parts]) -> tuple[Distribution, ...]:
    """Of consumers and followers as one, which is what most dashboards ask for."""
    for parts in all_parts:
        parts.complete()
    return tuple(
        Histogram.read_together([parts.histograms[position] for parts in all_parts]) for position in range(len(METRICS))
    )
