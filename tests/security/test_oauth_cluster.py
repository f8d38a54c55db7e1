"""Brokers that log in to each other by OAUTHBEARER: their tokens come from an endpoint, and end."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.security.sasl_kit import AUDIENCE, ISSUER, SECONDS_MAX, Issuer, TokenEndpoint, token_endpoint

from ottla.testing.cluster import RunningCluster
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import zookeeper

pytestmark = pytest.mark.one_broker("starts two")

TOKEN_SECONDS = 5
CLIENT_ID, CLIENT_SECRET = "brokers", "between-brokers"


class World:
    def __init__(self, running: RunningCluster, issuer: Issuer, endpoint: TokenEndpoint) -> None:
        self.cluster, self.issuer, self.endpoint = running, issuer, endpoint

    def client(self) -> dict[str, str | Callable[[str], tuple[str, float]]]:
        def fresh(_config: str) -> tuple[str, float]:
            token = self.issuer.token("admin")
            content = token.split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
            return token, float(claims["exp"])

        return {
            "bootstrap.servers": self.cluster.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": fresh,
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("oauth-cluster")
    issuer = Issuer(folder)
    with token_endpoint(issuer, CLIENT_ID, CLIENT_SECRET, life=TOKEN_SECONDS) as endpoint, zookeeper(1) as ensemble:
        settings = {
            "listeners": "SASL://127.0.0.1:0",
            "listener.security.protocol.map": "SASL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": issuer.url,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
            "listener.name.sasl.oauthbearer.sasl.jaas.config": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
                f'clientId="{CLIENT_ID}" clientSecret="{CLIENT_SECRET}" scope="replicate";'
            ),
            # Who fetches as a follower has to be a broker.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:admin;User:{CLIENT_ID}",
        }
        running = RunningCluster(folder, brokers=2, zookeeper=ensemble, settings=settings)
        with contextlib.closing(running):
            yield World(running.start(), issuer, endpoint)


def test_brokers_replicate_with_tokens_and_get_new_ones(world: World) -> None:
    admin = AdminClient(world.client())
    admin.poll(0.1)
    new = NewTopic("replicated", 1, 2, config={"min.insync.replicas": "2"})
    admin.create_topics([new])["replicated"].result(SECONDS_MAX)
    producer = Producer({**world.client(), "acks": "all", "message.timeout.ms": 60_000})

    def write() -> None:
        """With acks=all and two replicas: the other broker has it."""
        failed: list[str] = []
        producer.produce("replicated", b"r", on_delivery=lambda error, _: failed.append(str(error)) if error else None)
        assert producer.flush(SECONDS_MAX) == 0
        assert failed == []

    write()
    given = world.endpoint.given
    assert given >= 1, "the follower has asked for one"
    wait_until(lambda: world.endpoint.given > given, "its token has ended, and there is a new one", seconds=60)
    write()
    assert world.endpoint.scopes == {"replicate"}
    for broker in world.cluster.brokers.values():
        assert CLIENT_SECRET not in broker.log_text()
