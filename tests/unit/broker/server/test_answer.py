"""An answer carries when it passed which stage and how long its client has to wait, and the connection obeys."""

import json
import logging

import pytest
from tests.unit.broker.server.by_hand import DESCRIPTOR, ByHand, WantWrite

from ottla.broker.handlers.context import NO_RESPONSE, Call, Parked, Raw
from ottla.broker.handlers.fetching import packing as fetch_packing
from ottla.broker.handlers.producing import packing as produce_packing
from ottla.broker.server import request_log
from ottla.broker.server.answer import SLOW_NS, Answer
from ottla.broker.session import Session
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import decode
from ottla.protocol.frames import SIZE
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.messages.heartbeat import HeartbeatResponse
from ottla.protocol.messages.produce import ProduceResponse
from ottla.protocol.schema import NO_UUID

FIRST, SECOND, THIRD = b"request-1", b"request-2", b"request-3"


@pytest.fixture
def by_hand() -> ByHand:
    return ByHand()


def moments(answer: Answer) -> tuple[int, ...]:
    return (
        answer.received_ns,
        answer.dispatched_ns,
        answer.local_done_ns,
        answer.replied_ns,
        answer.sent_ns,
    )


def ticking(by_hand: ByHand) -> None:
    """Every handler takes ten nanoseconds."""

    def tick() -> None:
        by_hand.now_ns += 10

    by_hand.dispatcher.on_dispatch = tick


# Moments


def test_requests_that_come_together_wait_for_each_other(by_hand: ByHand) -> None:
    ticking(by_hand)
    by_hand.now_ns = 1000
    by_hand.arrive(FIRST, SECOND)
    assert [moments(answer) for answer in by_hand.answered] == [
        (1000, 1000, 1010, 1010, 1020),
        (1000, 1010, 1020, 1020, 1020),
    ]


def test_what_waits_is_replied_later_and_sent_in_order(by_hand: ByHand) -> None:
    ticking(by_hand)
    parked = Parked(holds_connection=False)
    by_hand.dispatcher.answer_with = lambda request: parked if request == FIRST else Raw([request], len(request))
    by_hand.arrive(FIRST, SECOND)
    by_hand.now_ns = 500
    parked.resolve(Raw([FIRST], len(FIRST)))
    by_hand.now_ns = 600
    by_hand.loop.run()
    assert by_hand.answers() == [FIRST, SECOND]
    assert [moments(answer) for answer in by_hand.answered] == [(0, 0, 10, 500, 600), (0, 10, 20, 20, 600)]


def test_a_request_held_back_keeps_the_moment_it_came(by_hand: ByHand) -> None:
    parked = Parked(holds_connection=True)
    by_hand.dispatcher.answer_with = lambda request: parked if request == FIRST else Raw([request], len(request))
    by_hand.now_ns = 5
    by_hand.arrive(FIRST, SECOND)
    by_hand.now_ns = 90
    parked.resolve(Raw([FIRST], len(FIRST)))
    by_hand.loop.run()
    assert [moments(answer)[:2] for answer in by_hand.answered] == [(5, 5), (5, 90)]


def test_an_answer_is_sent_when_its_last_byte_is(by_hand: ByHand) -> None:
    by_hand.channel.send_wishes.extend([None, WantWrite])
    by_hand.channel.arrived = b"".join(SIZE.pack(len(request)) + request for request in (FIRST, SECOND))
    by_hand.connection._on_readable()
    by_hand.channel.bytes_per_step = len(FIRST) + 8 + 3
    by_hand.now_ns = 10
    by_hand.loop.run()
    assert [answer.sent_ns for answer in by_hand.answered] == [10]
    by_hand.now_ns = 20
    by_hand.loop.writable()
    assert [answer.sent_ns for answer in by_hand.answered] == [10, 20]


# Watching


def told_of(by_hand: ByHand, took_ns: int, requests: int) -> list[int]:
    """So many requests in half a second, each after the other; the weights of those that were told of."""
    by_hand.answered.clear()
    by_hand.dispatcher.on_dispatch = lambda: setattr(by_hand, "now_ns", by_hand.now_ns + took_ns)
    for _ in range(requests):
        by_hand.arrive(FIRST)
    by_hand.watch.half_second_is_over()
    return [answer.weight for answer in by_hand.answered]


def test_of_many_requests_one_in_32_stands_for_the_others_and_none_that_took_long_is_missed(by_hand: ByHand) -> None:
    assert told_of(by_hand, 10, 499) == [1] * 499
    assert told_of(by_hand, 10, 564) == [1] * 500 + [32] * 2, "from then on at once, not after half a second"
    assert told_of(by_hand, 10, 800) == [32] * 25
    assert told_of(by_hand, SLOW_NS, 30) == [1] * 30
    assert told_of(by_hand, 10, 20) == [1] * 20, "few again"


@pytest.mark.parametrize("wanted", ["nothing", "wants_slow", "is_whole"])
def test_of_many_that_took_long_too_unless_somebody_wants_them_all(by_hand: ByHand, wanted: str) -> None:
    if wanted != "nothing":
        setattr(by_hand.watch, wanted, True)
    assert told_of(by_hand, SLOW_NS, 499) == [1] * 499
    all_of_them = wanted != "nothing"
    assert told_of(by_hand, SLOW_NS, 564) == ([1] * 564 if all_of_them else [1] * 500 + [32] * 2)
    assert told_of(by_hand, SLOW_NS, 800) == ([1] * 800 if all_of_them else [32] * 25)


# Muting


def test_a_muted_connection_reads_nothing_until_the_time_is_over(by_hand: ByHand) -> None:
    by_hand.dispatcher.throttle_ms = 2_000
    by_hand.arrive(FIRST, SECOND)
    assert by_hand.answers() == [FIRST], "the answer leaves at once (KIP-219), the next request waits"
    by_hand.dispatcher.throttle_ms = 0
    by_hand.arrive(THIRD)
    assert DESCRIPTOR not in by_hand.loop.readers
    by_hand.loop.advance(1.9)
    assert by_hand.answers() == [FIRST]
    busy = by_hand.connection.busy
    assert busy, "and is not idle"
    by_hand.loop.advance(0.1)
    assert by_hand.answers() == [FIRST, SECOND]
    assert by_hand.loop.reads
    by_hand.loop.readable()
    assert by_hand.answers() == [FIRST, SECOND, THIRD]
    assert not by_hand.connection.busy


def test_the_longest_time_counts(by_hand: ByHand) -> None:
    by_hand.connection.mute(3.0)
    by_hand.connection.mute(1.0)
    by_hand.arrive(FIRST)
    by_hand.loop.advance(2.0)
    assert by_hand.dispatcher.requests == []
    by_hand.connection.mute(2.0)
    by_hand.loop.advance(1.5)
    assert by_hand.dispatcher.requests == []
    by_hand.loop.advance(0.5)
    by_hand.loop.readable()
    assert by_hand.dispatcher.requests == [FIRST]


def test_who_wants_no_answer_is_muted_too(by_hand: ByHand) -> None:
    by_hand.dispatcher.answer_with = lambda request: NO_RESPONSE
    by_hand.dispatcher.throttle_ms = 1_000
    by_hand.arrive(FIRST, SECOND)
    assert by_hand.dispatcher.requests == [FIRST]
    by_hand.loop.advance(1.0)
    assert by_hand.dispatcher.requests == [FIRST, SECOND]


def test_a_muted_client_that_does_not_read_its_answer_waits_for_both(by_hand: ByHand) -> None:
    by_hand.dispatcher.throttle_ms = 1_000
    by_hand.channel.send_wishes.append(WantWrite)
    by_hand.arrive(FIRST, SECOND)
    by_hand.loop.advance(1.0)
    assert by_hand.dispatcher.requests == [FIRST]
    by_hand.loop.writable()
    assert by_hand.dispatcher.requests == [FIRST, SECOND]


def test_closing_ends_the_time_of_a_muted_connection(by_hand: ByHand) -> None:
    by_hand.connection.mute(1.0)
    by_hand.connection.close()
    by_hand.loop.advance(2.0)
    assert by_hand.dispatcher.requests == []


# Throttle times in responses


def test_the_longest_throttle_time_of_a_call_is_told() -> None:
    call = Call(ApiKey.HEARTBEAT, 4, None, Session("L", "h"))
    for ms in (5, 70, 6):
        call.throttle(ms)
    assert call.throttle_ms == 70


def test_a_response_of_the_codec_tells_the_throttle_time(by_hand: ByHand) -> None:
    by_hand.dispatcher.throttle_ms = 1234
    by_hand.dispatcher.answer_with = lambda request: HeartbeatResponse()
    by_hand.arrive(FIRST)
    (body,) = by_hand.answers()
    assert decode(HeartbeatResponse, 4, body).throttle_time_ms == 1234


@pytest.mark.parametrize("version", range(3, API[ApiKey.PRODUCE].max_version + 1))
def test_a_packed_produce_response_knows_its_throttle_field(version: int) -> None:
    outcomes = [produce_packing.PartitionOutcome(3, 0, 42, -1, 7)]
    raw = produce_packing.pack(version, [produce_packing.TopicOutcome("topic", NO_UUID, outcomes)])
    raw.tell_throttle(98_765)
    response = decode(ProduceResponse, version, b"".join(map(bytes, raw.chunks)))  # type: ignore[arg-type]
    assert response.throttle_time_ms == 98_765
    assert response.responses[0].partition_responses[0].base_offset == 42


@pytest.mark.parametrize("version", range(4, API[ApiKey.FETCH].max_version + 1))
def test_a_packed_fetch_response_knows_its_throttle_field(version: int) -> None:
    answer = fetch_packing.PartitionAnswer(("topic", NO_UUID), 3, 0, 42, 42, 0, None, None)
    raw = fetch_packing.pack(version, 0, 11, [answer])
    raw.tell_throttle(98_765)
    response = decode(FetchResponse, version, b"".join(map(bytes, raw.chunks)))  # type: ignore[arg-type]
    assert response.throttle_time_ms == 98_765
    assert response.responses[0].partitions[0].high_watermark == 42


def test_a_body_without_the_field_stays_as_it_is() -> None:
    raw = Raw([b"abc"], 3)
    raw.tell_throttle(5)
    assert raw.chunks == [b"abc"]


# The request log


def test_the_request_log_tells_who_asked_and_how_long_it_took(
    by_hand: ByHand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    by_hand.watch.listeners[:] = [request_log.write]
    by_hand.connection.session.runs("librdkafka", "2.8.0")
    by_hand.dispatcher.on_dispatch = lambda: setattr(by_hand, "now_ns", 2_500_000)
    assert not request_log.is_on()
    with caplog.at_level(logging.DEBUG, request_log.logger.name):
        assert request_log.is_on()
        by_hand.arrive(FIRST)
    (line,) = caplog.messages
    word, _, rest = line.partition(":")
    told = json.loads(rest)
    assert word == "Completed request"
    assert told["requestHeader"]["requestApiKeyName"] == "Heartbeat"
    assert told["requestHeader"]["clientId"] == "me"
    assert told["clientInformation"] == {"softwareName": "librdkafka", "softwareVersion": "2.8.0"}
    assert (told["principal"], told["listener"]) == ("User:ANONYMOUS", "PLAINTEXT")
    assert (told["totalTimeMs"], told["localTimeMs"], told["remoteTimeMs"]) == (2.5, 2.5, 0)
