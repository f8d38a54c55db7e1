"""The keys that sign tokens, as their issuer publishes them (JWKS): read again now and then, and when one is missing.

Whoever checks a token looks at the newest picture and never waits. A key that is not in it is looked for behind their
back, once a minute at most: a token with an invented key costs the issuer nothing.
"""

import asyncio
import json
import logging
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ottla.model.errors import OttlaError
from ottla.tls.trusting import trusting

logger = logging.getLogger(__name__)

ANSWER_SECONDS_MAX = 10.0
ANSWER_BYTES_MAX = 1024 * 1024
MISSING_KEY_SECONDS = 60.0
MISSING_KEYS_MAX = 1000


class KeySource(NamedTuple):
    url: str
    refresh_seconds: float
    retry_seconds: float
    retry_seconds_max: float


class NoKeys(OttlaError):
    """The keys could not be read, and why."""


class KeyKeeper:
    """Keeps the keys of one issuer while the broker runs."""

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self.keys = KeySet([])
        self.reads = 0
        self._wake = asyncio.Event()
        self._missed: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="signing keys")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def missing(self, key_id: str) -> None:
        """A token names a key that is not there: it may be a new one."""
        now = asyncio.get_running_loop().time()
        asked = self._missed.get(key_id, float("-inf"))
        if now - asked < MISSING_KEY_SECONDS or len(self._missed) >= MISSING_KEYS_MAX:
            return
        self._missed[key_id] = now
        self._wake.set()

    async def _keep(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            try:
                self.keys = await asyncio.to_thread(read_keys, self._source.url)
                self.reads += 1
                failures = 0
                pause = self._source.refresh_seconds
            except NoKeys as error:
                logger.error("Signing keys of OAUTHBEARER: %s", error)  # noqa: TRY400 (says it all)
                pause = min(self._source.retry_seconds * 2.0 ** min(failures, 30), self._source.retry_seconds_max)
                failures += 1
            await self._wait(pause, hurried=failures == 0)

    async def _wait(self, seconds: float, *, hurried: bool) -> None:
        """For so long, or until a key is missing; after a failure not even then, that would be a storm."""
        try:
            async with asyncio.timeout(seconds):
                if hurried:
                    await self._wake.wait()
                else:
                    await asyncio.Event().wait()
        except TimeoutError:
            now = asyncio.get_running_loop().time()
            self._missed = {key: when for key, when in self._missed.items() if now - when < MISSING_KEY_SECONDS}


def read_keys(url: str) -> KeySet:
    """NoKeys. Waits for a file or for the network."""
    try:
        found = json.loads(_read(url))
        return KeySet.import_key_set(found)
    except (OSError, urllib.error.URLError) as error:
        raise NoKeys(f"{url}: {getattr(error, 'reason', None) or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, JoseError) as error:
        raise NoKeys(f"{url}: that is no set of keys (JWKS): {error}") from error


def _read(url: str) -> bytes:
    if url.startswith("file:"):
        return Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)).read_bytes()
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 (settings allow http(s))
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    data = bytearray()
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX, context=trusting()) as response:  # noqa: S310
        # The limit of urlopen is for each wait: an answer that comes byte by byte would take for ever.
        while piece := response.read1(ANSWER_BYTES_MAX + 1 - len(data)):
            data += piece
            if len(data) > ANSWER_BYTES_MAX:
                raise ValueError(f"more than {ANSWER_BYTES_MAX} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the answer takes longer than {ANSWER_SECONDS_MAX:g} s")
    return bytes(data)
