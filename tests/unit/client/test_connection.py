"""One connection, against a broker that a test scripts."""

import asyncio
import socket

import pytest
from tests.unit.client.conftest import scripted_broker

import ottla
from ottla.client.connection import Connection
from ottla.client.errors import ConnectionLost, RequestTimeout, Unreachable, UnsupportedByBroker
from ottla.protocol.apis import ApiKey
from ottla.protocol.frames import RequestHeader
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from ottla.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.protocol.schema import TopLevel


def echo_group(_header: RequestHeader, request: TopLevel) -> TopLevel:
    assert isinstance(request, DeleteGroupsRequest)
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in request.groups_names])


def deleted(response: DeleteGroupsResponse) -> list[str]:
    return [result.group_id for result in response.results]


def test_requests_of_many_tasks_get_their_own_answers() -> None:
    async def scenario() -> list[list[str]]:
        async with scripted_broker(echo_group) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            answers = await asyncio.gather(
                *(connection.call(DeleteGroupsRequest(groups_names=[f"g{i}"]), DeleteGroupsResponse) for i in range(50))
            )
            await connection.close()
            return [deleted(answer) for answer in answers]

    assert asyncio.run(scenario()) == [[f"g{i}"] for i in range(50)]


def test_the_newest_shared_version_is_spoken() -> None:
    async def scenario(highest: int) -> int:
        served: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 4), ApiKey.DELETE_GROUPS: (0, highest)}
        async with scripted_broker(echo_group, served) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            answer = await connection.call(DeleteGroupsRequest(groups_names=["a"]), DeleteGroupsResponse)
            await connection.close()
            assert deleted(answer) == ["a"]
            return broker.seen[0][0].version

    assert asyncio.run(scenario(1)) == 1
    assert asyncio.run(scenario(2)) == 2
    assert asyncio.run(scenario(99)) == DeleteGroupsRequest.MAX_VERSION


def test_an_older_broker_is_asked_again_in_its_own_version() -> None:
    async def scenario() -> list[str]:
        served: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 2), ApiKey.DELETE_GROUPS: (0, 1)}
        async with scripted_broker(echo_group, served) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            answer = await connection.call(DeleteGroupsRequest(groups_names=["old"]), DeleteGroupsResponse)
            await connection.close()
            return deleted(answer)

    assert asyncio.run(scenario()) == ["old"]


def test_what_a_broker_does_not_serve_is_not_sent() -> None:
    async def scenario() -> None:
        served: dict[int, tuple[int, int]] = {ApiKey.API_VERSIONS: (0, 4), ApiKey.DELETE_GROUPS: (0, 1)}
        async with scripted_broker(echo_group, served) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            with pytest.raises(UnsupportedByBroker, match="does not serve ListGroups"):
                await connection.call(ListGroupsRequest(), ListGroupsResponse)
            with pytest.raises(UnsupportedByBroker, match="serves DeleteGroups v0 to v1"):
                await connection.call(DeleteGroupsRequest(), DeleteGroupsResponse, min_version=2)
            await connection.close()
            assert broker.seen == []

    asyncio.run(scenario())


def test_a_broker_that_hangs_up_fails_every_waiting_request() -> None:
    async def scenario() -> None:
        async with scripted_broker(lambda *_: None) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            waiting = [asyncio.create_task(connection.call(ListGroupsRequest(), ListGroupsResponse)) for _ in range(3)]
            await broker.has_seen(3)
            broker.hang_up()
            results = await asyncio.gather(*waiting, return_exceptions=True)
            assert [type(result) for result in results] == [ConnectionLost] * 3
            assert not connection.usable
            with pytest.raises(ConnectionLost):
                await connection.call(ListGroupsRequest(), ListGroupsResponse)
            await connection.close()

    asyncio.run(scenario())


def test_no_answer_in_time_ends_the_connection_because_later_answers_would_be_late_too() -> None:
    async def scenario() -> None:
        async with scripted_broker(lambda *_: None) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            with pytest.raises(RequestTimeout, match=r"ListGroups within 0\.05 s"):
                await connection.call(ListGroupsRequest(), ListGroupsResponse, timeout_s=0.05)
            assert not connection.usable
            await connection.close()

    asyncio.run(scenario())


def test_answers_out_of_turn_are_not_believed() -> None:
    async def scenario() -> None:
        async with scripted_broker(echo_group) as broker:
            broker.in_reverse = True
            connection = await Connection.open("127.0.0.1", broker.port)
            calls = [connection.call(DeleteGroupsRequest(groups_names=[g]), DeleteGroupsResponse) for g in "ab"]
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(result) for result in results] == [ConnectionLost, ConnectionLost]
            assert "out of turn" in str(results[0])
            await connection.close()

    asyncio.run(scenario())


def test_a_cancelled_caller_does_not_disturb_the_next() -> None:
    async def scenario() -> list[str]:
        async with scripted_broker(echo_group) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            first = asyncio.create_task(
                connection.call(DeleteGroupsRequest(groups_names=["first"]), DeleteGroupsResponse)
            )
            await asyncio.sleep(0)
            first.cancel()
            answer = await connection.call(DeleteGroupsRequest(groups_names=["second"]), DeleteGroupsResponse)
            await connection.close()
            return deleted(answer)

    assert asyncio.run(scenario()) == ["second"]


def test_nobody_there_is_said_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port, and connecting is refused
        port = taken.getsockname()[1]
        with pytest.raises(Unreachable, match=f"127.0.0.1:{port}: connection refused"):
            asyncio.run(Connection.open("127.0.0.1", port))


def test_something_that_is_no_broker_is_recognised() -> None:
    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(http, "127.0.0.1", 0)
        async with server:
            with pytest.raises(ConnectionLost, match="is it a Kafka broker"):
                await Connection.open("127.0.0.1", server.sockets[0].getsockname()[1])

    asyncio.run(scenario())


def test_brokers_are_told_which_client_this_is() -> None:
    async def scenario() -> list[ApiVersionsRequest]:
        async with scripted_broker(echo_group) as broker:
            connection = await Connection.open("127.0.0.1", broker.port)
            await connection.close()
            return broker.greetings

    (greeting,) = asyncio.run(scenario())
    assert (greeting.client_software_name, greeting.client_software_version) == ("ottla", ottla.__version__)
