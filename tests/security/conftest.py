"""One broker with a listener of each kind, certificates good and bad, and three clients to knock at the doors."""

import asyncio
import contextlib
import gc
import ssl
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from ottla.testing import RunningBroker, broker
from ottla.testing.tls import Certificates
from ottla.tls.authority import LOCAL_HOSTS

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python 3.11 has deprecated; its import is the only place.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka
    from kafka.errors import KafkaError
import aiokafka

PATIENCE_S = 30.0
REFUSED_S = 10.0
"""How long a client may take to say that it was refused."""


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates of another authority."""
    return Certificates(tmp_path_factory.mktemp("strangers"), "an authority that nobody knows")


@pytest.fixture(scope="session")
def secured(certificates: Certificates) -> Iterator[RunningBroker]:
    """Listeners PLAIN, TLS, MTLS (client certificates required), ASKS (requested), EXPIRED (its own certificate is),
    and ROTATED, whose stores a test may replace."""
    names = ("PLAIN", "TLS", "MTLS", "ASKS", "EXPIRED", "ROTATED")
    with broker(
        {
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
            "listener.security.protocol.map": "PLAIN:PLAINTEXT,TLS:SSL,MTLS:SSL,ASKS:SSL,EXPIRED:SSL,ROTATED:SSL",
            "socket.listen.backlog.size": 1000,
            "metrics.listener": "127.0.0.1:0",
            **certificates.broker_settings(),
            "listener.name.mtls.ssl.client.auth": "required",
            "listener.name.mtls.ssl.keystore.location": str(certificates.pkcs12("mtls", "in the store", LOCAL_HOSTS)),
            "listener.name.mtls.ssl.keystore.password": "in the store",
            "listener.name.mtls.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+).*$/$1/",
            "listener.name.asks.ssl.client.auth": "requested",
            "listener.name.rotated.ssl.keystore.location": str(certificates.pem("rotated", LOCAL_HOSTS)),
            "listener.name.expired.ssl.keystore.location": str(certificates.pem("old", LOCAL_HOSTS, expired=True)),
        }
    ) as running:
        yield running


class Credentials(NamedTuple):
    """What a client brings, in no client's own words."""

    tls: bool = True
    ca: Path | None = None
    keys: Path | None = None
    """PEM, key and certificate."""
    check_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.check_hostname = self.check_hostname
        if self.keys is not None:
            context.load_cert_chain(self.keys)
        return context

    def librdkafka(self) -> dict[str, str]:
        if not self.tls:
            return {}
        keys = {"ssl.certificate.location": str(self.keys), "ssl.key.location": str(self.keys)} if self.keys else {}
        return {"security.protocol": "SSL", "ssl.ca.location": str(self.ca), **keys}


class Refused(Exception):
    """The client could not get in."""


RoundTrip = Callable[[str, Credentials, str, list[bytes]], list[bytes]]
"""(bootstrap, credentials, topic, values): what came back of them. Refused if nobody let the client in."""


def _knock(settings: dict[str, Any]) -> list[bytes]:
    told: list[str] = []
    producer = Producer({**settings, "error_cb": lambda error: told.append(str(error))})
    deadline = time.monotonic() + REFUSED_S
    while not told and time.monotonic() < deadline:
        producer.poll(0.05)
    if told:
        raise Refused(told[0])
    return []


def with_confluent_kafka(bootstrap: str, credentials: Credentials, topic: str, values: list[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, **credentials.librdkafka()}
    if not values:
        return _knock(settings)
    producer = Producer(settings)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    got: list[bytes] = []
    with contextlib.closing(consumer):
        while len(got) < len(values):
            (message,) = consumer.consume(1, PATIENCE_S)
            assert message.error() is None
            got.append(message.value() or b"")
    return got


def with_kafka_python(bootstrap: str, credentials: Credentials, topic: str, values: list[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap}
    if credentials.tls:
        settings |= {"security_protocol": "SSL", "ssl_context": credentials.context()}
    try:
        producer = kafka.KafkaProducer(**settings, bootstrap_timeout_ms=PATIENCE_S * 1000 if values else 1_000)
    except KafkaError as error:
        raise Refused(str(error)) from None
    for value in values:
        producer.send(topic, value)
    producer.flush(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, **settings, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=PATIENCE_S * 1000
    )
    got = [message.value for _, message in zip(values, consumer, strict=False)]
    consumer.close()
    return got


def with_aiokafka(bootstrap: str, credentials: Credentials, topic: str, values: list[bytes]) -> list[bytes]:
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap}
    if credentials.tls:
        settings |= {"security_protocol": "SSL", "ssl_context": credentials.context()}

    async def run() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(**settings, request_timeout_ms=int(PATIENCE_S * 1000 if values else 1_000))
        try:
            await producer.start()
        except aiokafka.errors.KafkaError as error:
            await producer.stop()
            raise Refused(str(error)) from None
        for value in values:
            await producer.send_and_wait(topic, value)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(topic, **settings, group_id=topic, auto_offset_reset="earliest")
        await consumer.start()
        async with asyncio.timeout(PATIENCE_S):
            got = [(await consumer.getone()).value for _ in values]
        await consumer.stop()
        return got

    return asyncio.run(run())


CLIENTS: dict[str, RoundTrip] = {
    "confluent-kafka": with_confluent_kafka,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


@pytest.fixture(params=CLIENTS)
def round_trip(request: pytest.FixtureRequest) -> Iterator[RoundTrip]:
    yield CLIENTS[request.param]
    gc.collect()  # kafka-python leaves sockets behind where it cannot connect; else another test would hear of them
