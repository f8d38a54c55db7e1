"""A channel may want anything at any moment; the connection gives it that, and loses and repeats nothing."""

import asyncio
import os
import random
import socket
from collections import deque
from pathlib import Path

import pytest
from tests.unit.broker.server.by_hand import ByHand, EchoDispatcher

from ottla.broker.handlers.context import Parked, Raw
from ottla.broker.server.channel import PlainChannel, WantChannel, WantRead, WantWrite
from ottla.broker.server.connection import Connection
from ottla.broker.server.limits import RequestMemory
from ottla.broker.server.turn import FlushTurn
from ottla.broker.session import Session
from ottla.broker.storage.disk import SegmentFile
from ottla.broker.storage.log import LogSlice
from ottla.protocol.frames import SIZE

FIRST, SECOND = b"request-1", b"request-2"


@pytest.fixture
def by_hand() -> ByHand:
    return ByHand()


def test_reading_that_wants_to_read_goes_on_when_there_is_something(by_hand: ByHand) -> None:
    by_hand.channel.receive_wishes.append(WantRead)
    by_hand.arrive(FIRST)
    assert by_hand.answers() == []
    assert not by_hand.closed
    by_hand.loop.readable()
    assert by_hand.answers() == [FIRST]


def test_reading_that_wants_to_write_waits_for_that_and_for_nothing_else(by_hand: ByHand) -> None:
    by_hand.channel.receive_wishes.append(WantWrite)
    by_hand.arrive(FIRST)
    assert (by_hand.loop.reads, by_hand.loop.writes) == (False, True), "else the loop would spin on readable bytes"
    by_hand.loop.writable()
    assert by_hand.answers() == [FIRST]
    assert (by_hand.loop.reads, by_hand.loop.writes) == (True, False)


def test_writing_that_wants_to_read_goes_on_when_there_is_something(by_hand: ByHand) -> None:
    by_hand.channel.send_wishes.append(WantRead)
    by_hand.arrive(FIRST)
    assert by_hand.answers() == []
    assert (by_hand.loop.reads, by_hand.loop.writes) == (True, False)
    by_hand.arrive(SECOND)
    assert by_hand.answers() == [FIRST], "the waiting answer is sent before anything is read"
    by_hand.loop.readable()
    assert by_hand.answers() == [FIRST, SECOND]


def test_writing_that_wants_first_this_and_then_that(by_hand: ByHand) -> None:
    by_hand.channel.send_wishes.extend([WantWrite, WantRead, WantWrite])
    by_hand.arrive(FIRST)
    assert by_hand.loop.writes
    by_hand.loop.writable()
    assert (by_hand.loop.reads, by_hand.loop.writes) == (True, False)
    by_hand.loop.readable()
    assert by_hand.loop.writes
    by_hand.loop.writable()
    assert by_hand.answers() == [FIRST]
    assert (by_hand.loop.reads, by_hand.loop.writes) == (True, False)


def test_a_slice_that_a_thread_prepares_is_sent_when_the_channel_says_so(by_hand: ByHand, tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(bytes(50_000))
    piece = LogSlice(SegmentFile(os.open(path, os.O_RDONLY)), 10, 40_000, 0)
    by_hand.dispatcher.answer_with = lambda request: Raw([request, piece], len(request) + 40_000)
    by_hand.channel.send_wishes.extend([None, WantChannel])
    by_hand.arrive(FIRST)
    assert by_hand.answers() == []
    assert not by_hand.loop.writes, "the socket is writable all the time: waiting for that would spin"
    assert by_hand.channel.on_ready is not None
    by_hand.channel.on_ready()
    by_hand.loop.run()
    assert by_hand.answers() == [FIRST + bytes(40_000)]


def test_bytes_inside_the_channel_are_read_without_the_poller(by_hand: ByHand) -> None:
    """One record of TLS may hold many requests, and OpenSSL takes the whole of it out of the socket."""
    parked = Parked(holds_connection=True)
    by_hand.dispatcher.answer_with = lambda request: parked if request == FIRST else Raw([request], len(request))
    by_hand.channel.bytes_per_step = len(FIRST) + 4
    by_hand.channel.hides_bytes = True
    by_hand.arrive(FIRST, SECOND)
    assert by_hand.dispatcher.requests == [FIRST]
    parked.resolve(Raw([FIRST], len(FIRST)))
    by_hand.loop.run()  # nobody says that the socket is readable
    assert by_hand.answers() == [FIRST, SECOND]


def test_what_the_channel_holds_back_is_flushed(by_hand: ByHand) -> None:
    by_hand.channel.unsent = True
    by_hand.channel.send_wishes.extend([None, WantWrite])
    by_hand.arrive(FIRST)
    assert by_hand.loop.writes
    by_hand.connection.stop()
    assert not by_hand.closed, "the peer has not got it yet"
    by_hand.loop.writable()
    assert by_hand.closed == [by_hand.connection]
    assert by_hand.answers() == [FIRST]


def test_a_closed_connection_waits_for_nothing(by_hand: ByHand) -> None:
    by_hand.channel.send_wishes.append(WantWrite)
    by_hand.channel.receive_wishes.extend([None, WantWrite])
    by_hand.arrive(FIRST)
    by_hand.connection.close()
    assert by_hand.channel.closed
    assert by_hand.channel.on_ready is None
    assert (by_hand.loop.reads, by_hand.loop.writes) == (False, False)


@pytest.mark.parametrize("seed", range(30))
def test_no_mood_of_a_channel_loses_or_repeats_a_byte(seed: int) -> None:
    chance = random.Random(seed)
    by_hand = ByHand()
    moods = (None, None, WantRead, WantWrite, WantChannel)
    by_hand.channel.bytes_per_step = chance.choice((1, 7, 100))
    requests = [bytes(chance.randbytes(chance.randint(8, 40))) for _ in range(20)]
    waiting = list(requests)
    for _ in range(3_000):
        by_hand.channel.receive_wishes = deque([chance.choice(moods)])
        by_hand.channel.send_wishes = deque([chance.choice(moods)])
        if waiting and chance.random() < 0.3:
            request = waiting.pop(0)
            by_hand.channel.arrived += SIZE.pack(len(request)) + request
        if by_hand.channel.arrived or by_hand.loop.reads:
            by_hand.loop.readable()
        by_hand.loop.writable()
        if by_hand.channel.on_ready is not None and chance.random() < 0.5:
            by_hand.channel.on_ready()
            by_hand.loop.run()
        if len(by_hand.answers()) == len(requests):
            break
    assert by_hand.answers() == requests
    assert not by_hand.closed


def test_a_plain_channel_over_a_socket() -> None:
    """More than the sockets hold goes there and back, through a connection on a real loop."""
    requests = [bytes([number]) * (200_000 if number % 3 == 0 else 900) for number in range(1, 13)]

    async def run() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        dispatcher = EchoDispatcher()
        connection = Connection(
            loop, PlainChannel(ours), Session("L", "h"), dispatcher,  # type: ignore[arg-type]
            RequestMemory(lambda: -1), FlushTurn(loop), 1 << 20, lambda connection: None,
        )  # fmt: skip
        reader, writer = await asyncio.open_connection(sock=theirs)
        writer.writelines(SIZE.pack(len(request)) + request for request in requests)
        for request in requests:
            (size,) = SIZE.unpack(await reader.readexactly(4))
            assert (await reader.readexactly(size))[4:] == request
        assert not connection.is_closed()
        connection.close()
        writer.transport.abort()

    asyncio.run(run())
