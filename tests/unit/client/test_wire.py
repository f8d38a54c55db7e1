"""Frames come out as they went in, however the network cuts them up."""

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.client.wire import STAGE_BYTES, FrameProtocol

LIMIT = 4 * STAGE_BYTES

sizes = st.one_of(
    st.integers(4, 300),
    st.integers(STAGE_BYTES - 20, STAGE_BYTES + 20),
    st.integers(STAGE_BYTES, LIMIT),
)


def received(data: bytes, chunks: list[int]) -> tuple[list[bytes], list[str]]:
    """What comes out for these bytes if they come in pieces of these sizes, the sizes taken in turn."""
    frames: list[bytes] = []
    endings: list[str] = []

    async def scenario() -> None:
        protocol = FrameProtocol(
            LIMIT, lambda frame: frames.append(bytes(frame)), lambda error: endings.append(str(error))
        )
        position = turn = 0
        while position < len(data) and not endings:
            room = protocol.get_buffer(-1)
            assert len(room) > 0
            piece = data[position : position + min(chunks[turn % len(chunks)], len(room))]
            room[: len(piece)] = piece
            protocol.buffer_updated(len(piece))
            position += len(piece)
            turn += 1

    asyncio.run(scenario())
    return frames, endings


@given(st.lists(sizes, max_size=8), st.lists(st.integers(1, 2 * STAGE_BYTES), min_size=1, max_size=5))
def test_frames_come_out_as_they_went_in(lengths: list[int], chunks: list[int]) -> None:
    sent = [bytes([number % 251]) * length for number, length in enumerate(lengths)]
    # One byte at a time is the worst case, and quick enough for small frames only.
    pieces = [1, *chunks] if sum(lengths) < 2000 else [max(chunk, 500) for chunk in chunks]
    frames, endings = received(b"".join(struct.pack(">i", len(frame)) + frame for frame in sent), pieces)
    assert frames == sent
    assert endings == []


@pytest.mark.parametrize("size", [-1, 0, 3, LIMIT + 1])
def test_an_announcement_that_cannot_be_is_the_end(size: int) -> None:
    good = struct.pack(">i", 5) + b"hello"
    frames, endings = received(good + struct.pack(">i", size) + b"more", [100])
    assert frames == [b"hello"]
    assert endings == [f"an answer of {size} bytes was announced; is it a Kafka broker?"]


def test_a_writer_waits_while_the_socket_is_full() -> None:
    async def scenario() -> list[str]:
        protocol = FrameProtocol(LIMIT, lambda _: None, lambda _: None)
        order: list[str] = []

        async def write() -> None:
            await protocol.drain()
            order.append("written")

        await protocol.drain()  # nothing is in the way
        protocol.pause_writing()
        writing = asyncio.create_task(write())
        await asyncio.sleep(0)
        order.append("resumed")
        protocol.resume_writing()
        await writing
        return order

    assert asyncio.run(scenario()) == ["resumed", "written"]
