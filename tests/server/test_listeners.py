"""Where the broker listens, and where it sends its clients."""

import socket

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ottla.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.testing import BrokerDidNotStart, RunningBroker, broker
from ottla.testing.wire import WireConnection


def _advertised(host: str, port: int) -> tuple[str, int]:
    with WireConnection(host, port) as connection:
        (node,) = connection.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers
        found = connection.call(FindCoordinatorRequest(key="g"), 2, FindCoordinatorResponse)
        assert (found.host, found.port) == (node.host, node.port), "the coordinator is told for the same listener"
        return node.host, node.port


@pytest.mark.ottla({"listeners": "PLAINTEXT://[::1]:0"})
def test_ipv6(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    assert running.host == "::1"
    assert _advertised("::1", running.port) == ("::1", running.port)
    failures: list[object] = []
    producer = Producer({"bootstrap.servers": running.bootstrap})
    producer.produce("six", b"x", on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(20) == 0
    assert failures == []


@pytest.mark.ottla(
    {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
        "advertised.listeners": "INSIDE://inside.invalid:1111,OUTSIDE://outside.invalid:2222",
    }
)
def test_each_listener_advertises_its_own_address(ottla_fresh_broker: RunningBroker) -> None:
    inside, outside = ottla_fresh_broker.listeners["INSIDE"], ottla_fresh_broker.listeners["OUTSIDE"]
    assert inside[1] != outside[1]
    assert _advertised(*inside) == ("inside.invalid", 1111)
    assert _advertised(*outside) == ("outside.invalid", 2222)


@pytest.mark.ottla(
    {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        "inter.broker.listener.name": "INSIDE",
    }
)
def test_without_advertised_listeners_a_client_stays_where_it_came(ottla_fresh_broker: RunningBroker) -> None:
    for name, address in ottla_fresh_broker.listeners.items():
        assert _advertised(*address) == address
        admin = AdminClient({"bootstrap.servers": ottla_fresh_broker.bootstrap_of(name)})
        assert [node.port for node in admin.list_topics(timeout=20).brokers.values()] == [address[1]]


def test_a_port_that_is_taken_is_said_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(BrokerDidNotStart, match=f"cannot listen on PLAINTEXT://127.0.0.1:{port}"),
            broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}),
        ):
            pass
