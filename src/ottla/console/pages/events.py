"""One stream for each open page: it says when there is something new to see."""

import json
import time
from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse

from ottla.console.asking import Ask

BEAT_SECONDS = 15.0
"""A stream that says nothing for longer is taken for dead, by browsers and what stands between."""
STREAM_SECONDS_MAX = 900.0
"""Then a browser asks again, and passes the gate again: a session that is over gets nothing more."""
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def event(kind: str, document: object) -> bytes:
    """JSON has no line breaks, so one line of data holds it."""
    return f"event: {kind}\ndata: {json.dumps(document, ensure_ascii=False)}\n\n".encode()


def stream(parts: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(parts, media_type="text/event-stream", headers=HEADERS)


async def follow(ask: Ask) -> Response:
    return stream(_looks(ask))


async def _looks(ask: Ask) -> AsyncIterator[bytes]:
    watched = ask.watched
    async with watched.viewer():
        number = watched.last.number if watched.last is not None else 0
        yield b"retry: 3000\n\n"
        until = time.monotonic() + STREAM_SECONDS_MAX
        while time.monotonic() < until:
            found = await watched.following(number, BEAT_SECONDS)
            if found is None:
                yield b": still here\n\n"
                continue
            number = found.number
            yield event("look", {"number": number, "taken_ms": found.taken_ms})
