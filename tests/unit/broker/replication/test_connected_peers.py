"""Calls between brokers, against brokers that a test scripts."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import cast

import pytest
from tests.unit.client.conftest import scripted_broker

from ottla.broker.replication.connected_peers import ConnectedPeers
from ottla.broker.replication.peers import PeerUnavailable
from ottla.cluster.image import BrokerImage, ClusterImage, Endpoint, changes_between
from ottla.cluster.store import MetadataStore, Subscriber
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.protocol.schema import TopLevel


class Picture:
    """As much of a metadata store as the peers look at."""

    def __init__(self, *brokers: BrokerImage) -> None:
        self.image = ClusterImage(brokers={broker.id: broker for broker in brokers})
        self._subscribers: list[Subscriber] = []

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def show(self, *brokers: BrokerImage) -> None:
        old, self.image = self.image, ClusterImage(brokers={broker.id: broker for broker in brokers})
        for subscriber in list(self._subscribers):
            subscriber(changes_between(old, self.image))


def at(port: int, *, epoch: int = 1, number: int = 2) -> BrokerImage:
    endpoints = (Endpoint("OUTSIDE", "nowhere.invalid", 9092), Endpoint("INSIDE", "127.0.0.1", port))
    return BrokerImage(number, None, endpoints, epoch)


def peers_in(picture: Picture) -> ConnectedPeers:
    return ConnectedPeers(1, cast("MetadataStore", picture), "INSIDE")


def echo(_header: RequestHeader, request: TopLevel) -> TopLevel:
    assert isinstance(request, DeleteGroupsRequest)
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.groups_names])


async def ask(peers: ConnectedPeers, name: str, *, timeout_s: float = 5.0, lane: str = "main") -> str:
    answer = await peers.call(
        2, DeleteGroupsRequest(groups_names=[name]), DeleteGroupsResponse, timeout_s=timeout_s, lane=lane
    )
    return answer.results[0].group_id


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await scenario()

    asyncio.run(bounded())


def test_requests_made_before_the_connection_stands_arrive_in_order() -> None:
    async def scenario() -> None:
        async with scripted_broker(echo) as broker:
            peers = peers_in(Picture(at(broker.port)))
            names = [f"g{number}" for number in range(20)]
            assert await asyncio.gather(*(ask(peers, name) for name in names)) == names
            asked = [cast("DeleteGroupsRequest", request).groups_names[0] for _, request in broker.seen]
            assert asked == names
            assert {header.client_id for header, _ in broker.seen} == {"broker-1"}
            await peers.close()

    run(scenario)


def test_a_lane_that_waits_does_not_hold_up_another() -> None:
    async def scenario() -> None:
        held = "held"

        def answer(header: RequestHeader, request: TopLevel) -> TopLevel | None:
            assert isinstance(request, DeleteGroupsRequest)
            return None if request.groups_names == [held] else echo(header, request)

        async with scripted_broker(answer) as broker:
            peers = peers_in(Picture(at(broker.port)))
            waiting = asyncio.create_task(ask(peers, held, lane="fetch"))
            await broker.has_seen(1)
            assert await ask(peers, "other") == "other"
            await peers.close()
            with pytest.raises(PeerUnavailable):
                await waiting

    run(scenario)


def test_a_broker_that_is_not_known_or_does_not_listen_is_unavailable() -> None:
    async def scenario() -> None:
        picture = Picture()
        peers = peers_in(picture)
        with pytest.raises(PeerUnavailable, match="broker 2: it does not run"):
            await ask(peers, "g")
        picture.show(at(unused_port()))
        with pytest.raises(PeerUnavailable, match="refused"):
            await ask(peers, "g")
        await peers.close()
        with pytest.raises(PeerUnavailable, match="stopping"):
            await ask(peers, "g")

    run(scenario)


def test_who_waits_while_an_attempt_fails_shares_the_failure() -> None:
    async def scenario() -> None:
        peers = peers_in(Picture(at(unused_port())))
        began = asyncio.get_running_loop().time()
        results = await asyncio.gather(*(ask(peers, "g") for _ in range(50)), return_exceptions=True)
        assert all(isinstance(result, PeerUnavailable) for result in results)
        assert asyncio.get_running_loop().time() - began < 2, "fifty attempts with pauses take much longer"
        await peers.close()

    run(scenario)


def test_an_answer_that_does_not_come_in_time_frees_the_lane() -> None:
    async def scenario() -> None:
        silent = False

        def answer(header: RequestHeader, request: TopLevel) -> TopLevel | None:
            return None if silent else echo(header, request)

        async with scripted_broker(answer) as broker:
            peers = peers_in(Picture(at(broker.port)))
            assert await ask(peers, "f") == "f"  # connected: what follows is about the answer alone
            silent = True
            with pytest.raises(PeerUnavailable, match="DeleteGroups"):
                await ask(peers, "g", timeout_s=0.05)
            silent = False
            assert await ask(peers, "h") == "h"
            await peers.close()

    run(scenario)


def test_a_connection_that_was_lost_is_opened_again() -> None:
    async def scenario() -> None:
        async with scripted_broker(echo) as broker:
            peers = peers_in(Picture(at(broker.port)))
            assert await ask(peers, "g") == "g"
            broker.hang_up()
            answered = ""
            while not answered:  # the first may find out that the connection has gone
                try:
                    answered = await ask(peers, "h")
                except PeerUnavailable:
                    continue
            assert answered == "h"
            await peers.close()

    run(scenario)


@pytest.mark.parametrize("change", ["gone", "another epoch", "another address"])
def test_a_broker_that_goes_or_begins_anew_frees_whoever_waits_for_it(change: str) -> None:
    async def scenario() -> None:
        async with scripted_broker(lambda *_: None) as first, scripted_broker(echo) as second:
            picture = Picture(at(first.port))
            peers = peers_in(picture)
            waiting = asyncio.create_task(ask(peers, "g", timeout_s=15))
            await first.has_seen(1)
            after = {"gone": (), "another epoch": (at(first.port, epoch=2),), "another address": (at(second.port),)}
            picture.show(*after[change])
            with pytest.raises(PeerUnavailable):
                await waiting
            picture.show(at(second.port, epoch=3))
            assert await ask(peers, "h") == "h"
            await peers.close()

    run(scenario)


def test_a_change_elsewhere_disturbs_nobody() -> None:
    async def scenario() -> None:
        async with scripted_broker(echo) as broker:
            picture = Picture(at(broker.port))
            peers = peers_in(picture)
            await ask(peers, "g")
            picture.show(at(broker.port), at(9, number=3))
            lane = peers._lanes[2, "main"]
            await ask(peers, "h")
            assert peers._lanes[2, "main"] is lane
            await peers.close()

    run(scenario)


def test_records_of_an_answer_are_views_of_the_frame() -> None:
    async def scenario() -> None:
        records = bytes(range(256)) * 1024
        answer = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=records)])])
        async with scripted_broker(lambda *_: answer) as broker:
            peers = peers_in(Picture(at(broker.port)))
            response = await peers.call(2, FetchRequest(), FetchResponse, timeout_s=5)
            received = response.responses[0].partitions[0].records
            assert isinstance(received, memoryview)
            assert isinstance(received.obj, bytearray), "the frame as it was received, not a copy of it"
            assert received == records
            await peers.close()

    run(scenario)
