"""A request that changes something finds the writer, however late instances hear of an election."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import pytest

from ottla.http.address import parse_address
from ottla.http.thread import HttpThread
from ottla.registry.election import Identity
from ottla.registry.errors import Code
from ottla.registry.rest import serving
from ottla.registry.rest.forwarding import FORWARDED, Forwarder
from ottla.registry.service import Registry

HERE, THERE = Identity("127.0.0.1", 1), Identity("127.0.0.1", 2)
REFUSAL = {"error_code": Code.NO_LEADER, "message": "Master not known"}


class Follower:
    """A registry that takes another instance for the writer."""

    identity = HERE

    def __init__(self) -> None:
        self.topic = self
        self.waited = 0

    async def known_writer(self) -> Identity:
        return THERE

    async def next_writer(self, _seconds: float) -> None:
        self.waited += 1

    async def catch_up(self) -> None:
        await asyncio.sleep(0)


class Writer:
    """Another instance, which refuses as often as it is told to."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    async def forward(self, _url: str, _request: Any) -> tuple[int, Mapping[str, str], bytes]:
        if self.refusals:
            self.refusals -= 1
            return 500, {}, json.dumps(REFUSAL).encode()
        return 200, {}, b'{"compatibility": "NONE"}'


def answered(follower: Follower, writer: Writer, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
    """To a PUT of the level of compatibility."""
    made = partial(serving.registry_application, cast("Registry", follower), cast("Forwarder", writer))
    server = HttpThread(made, parse_address("0"))
    server.start()
    asked = urllib.request.Request(
        f"{server.url}/config", b'{"compatibility": "NONE"}', dict(headers or {}), method="PUT"
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as found:
            return found.status, json.load(found)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)
    finally:
        server.close()


def test_a_writer_that_does_not_know_yet_is_asked_again() -> None:
    follower = Follower()
    assert answered(follower, Writer(refusals=3)) == (200, {"compatibility": "NONE"})
    assert follower.waited == 3


def test_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LEADER_SECONDS_MAX", -1.0)
    assert answered(Follower(), Writer(refusals=3)) == (500, REFUSAL)


def test_what_was_sent_on_is_not_sent_on_again() -> None:
    status, told = answered(Follower(), Writer(refusals=0), {FORWARDED: "true"})
    assert (status, told["error_code"]) == (500, Code.NO_LEADER)
