"""Requests of one connection are answered in order, and a graceful stop answers what it has taken."""

import struct
from collections.abc import Callable

import pytest

from ottla.model.errors import ErrorCode
from ottla.protocol.codec import decode
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from ottla.protocol.messages.metadata import MetadataRequest
from ottla.protocol.messages.produce import ProduceRequest, ProduceResponse
from ottla.protocol.schema import TopLevel
from ottla.testing import RunningBroker
from ottla.testing.requests import FETCH_VERSION, PRODUCE_VERSION, create_topic, fetch_request, produce_request
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

LONGER_THAN_ANY_TEST_MS = 3_600_000


def test_pipelined_requests_are_answered_in_order(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    topic = unique("pipeline")
    with WireConnection(ottla_broker.host, ottla_broker.port) as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE
        sent: list[tuple[int, int]] = []
        frames = bytearray()
        for number in range(400):
            request: TopLevel
            match number % 5:
                case 0 | 1:
                    request, version = produce_request(topic, 0, [b"%d" % number]), PRODUCE_VERSION
                case 2:
                    request, version = MetadataRequest(topics=[]), 12
                case 3:
                    # Reads at the end of the log, so it waits: what comes behind it must wait too.
                    request = fetch_request(topic, 0, 2 * (number // 5 + 1), max_wait_ms=5)
                    version = FETCH_VERSION
                case _:
                    request, version = ApiVersionsRequest(), 3
            frames += connection.frame(request, version)
            sent.append((connection.last_correlation_id, request.API_KEY))
        connection.send(frames)
        offsets = []
        for correlation_id, api_key in sent:
            frame = connection.read_frame()
            assert struct.unpack_from(">i", frame) == (correlation_id,)
            if api_key == ProduceRequest.API_KEY:
                answer = decode(ProduceResponse, PRODUCE_VERSION, frame, 5)
                offsets.append(answer.responses[0].partition_responses[0].base_offset)
        assert offsets == list(range(160)), "appended in the order in which they were sent"


def test_a_produce_without_acks_is_not_answered(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    topic = unique("silent")
    with WireConnection(ottla_broker.host, ottla_broker.port) as connection:
        assert create_topic(connection, topic) == ErrorCode.NONE
        for _ in range(3):
            connection.send(connection.frame(produce_request(topic, 0, [b"x"], acks=0), PRODUCE_VERSION))

        def committed() -> int:
            answer = connection.call(fetch_request(topic, 0, 0), FETCH_VERSION, FetchResponse)
            return answer.responses[0].partitions[0].high_watermark

        wait_until(lambda: committed() == 3, "all three are there, and the next answer is that of the next request")


def test_a_fetch_is_woken_by_a_produce(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    topic = unique("woken")
    with (
        WireConnection(ottla_broker.host, ottla_broker.port) as reader,
        WireConnection(ottla_broker.host, ottla_broker.port) as writer,
    ):
        assert create_topic(writer, topic) == ErrorCode.NONE
        reader.send(reader.frame(fetch_request(topic, 0, 0, max_wait_ms=LONGER_THAN_ANY_TEST_MS), FETCH_VERSION))
        writer.call(produce_request(topic, 0, [b"x"]), PRODUCE_VERSION, ProduceResponse)
        _, body = reader.read_answer(FetchRequest.API_KEY, FETCH_VERSION)
        assert decode(FetchResponse, FETCH_VERSION, body).responses[0].partitions[0].records


@pytest.mark.ottla(node_id=1)  # of one broker, also where the others are of a cluster
def test_a_graceful_stop_answers_what_is_in_flight(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    with (
        WireConnection(running.host, running.port) as reader,
        WireConnection(running.host, running.port) as joiner,
        WireConnection(running.host, running.port) as writer,
        WireConnection(running.host, running.port) as idle,
    ):
        assert create_topic(writer, "t") == ErrorCode.NONE
        reader.send(reader.frame(fetch_request("t", 0, 0, max_wait_ms=LONGER_THAN_ANY_TEST_MS), FETCH_VERSION))
        _join_first(joiner)
        _join_and_wait(idle)
        frames = b"".join(writer.frame(produce_request("t", 0, [b"%d" % n]), PRODUCE_VERSION) for n in range(50))
        writer.send(frames)
        first = writer.read_frame()
        running.ask_to_stop()  # neither the waiting fetch nor the waiting join holds it up until its grace is over
        _, body = reader.read_answer(FetchRequest.API_KEY, FETCH_VERSION)
        assert decode(FetchResponse, FETCH_VERSION, body).error_code == ErrorCode.NONE
        _, body = idle.read_answer(JoinGroupRequest.API_KEY, 5)
        assert decode(JoinGroupResponse, 5, body).error_code != ErrorCode.NONE
        acknowledged = [first]
        while (frame := _next(writer)) is not None:
            acknowledged.append(frame)
        assert running.wait() == 0
    running.start()
    with WireConnection(running.host, running.port) as connection:
        answer = connection.call(fetch_request("t", 0, 0), FETCH_VERSION, FetchResponse)
        assert answer.responses[0].partitions[0].high_watermark >= len(acknowledged)


def _next(connection: WireConnection) -> bytes | None:
    try:
        return connection.read_frame()
    except ConnectionError:
        return None


def _join(member_id: str = "") -> JoinGroupRequest:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    return JoinGroupRequest(
        group_id="g", session_timeout_ms=30_000, rebalance_timeout_ms=60_000, member_id=member_id,
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip


def _join_first(connection: WireConnection) -> None:
    """Become the one member; the next to join then waits until this one joins again."""
    found = connection.call(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
    assert found.error_code == ErrorCode.NONE
    told = connection.call(_join(), 5, JoinGroupResponse)
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert connection.call(_join(told.member_id), 5, JoinGroupResponse).error_code == ErrorCode.NONE


def _join_and_wait(connection: WireConnection) -> None:
    told = connection.call(_join(), 5, JoinGroupResponse)
    connection.send(connection.frame(_join(told.member_id), 5))
