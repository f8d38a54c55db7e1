"""The console over Apache Kafka: the newest release, and the oldest that it is for."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from compat.peer import kafka, kafka_2_8
from compat.peer.kafka import Kafka
from tests.console.conftest import CLUSTER, Running, Site
from tests.console.test_pages import ELSEWHERE, check, fill, sample

from ottla.console.access.gate import AccessSettings
from ottla.console.clusters import ClusterSettings
from ottla.console.routes import ENTRIES

PEERS = {"Kafka 4.3": kafka.running, "Kafka 2.8": kafka_2_8.running}


@pytest.fixture(params=PEERS)
def peer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Kafka]]:
    with PEERS[request.param](tmp_path / "peer") as node:
        yield request.param, node


@pytest.fixture
def site(peer: tuple[str, Kafka]) -> Iterator[Site]:
    running = Running(ClusterSettings(CLUSTER, {"bootstrap.servers": peer[1].bootstrap}), AccessSettings())
    yield Site(running.url)
    running.stop()


@pytest.mark.timeout(600)
def test_every_page_and_answer(site: Site, peer: tuple[str, Kafka]) -> None:
    release, _ = peer
    topic, group, letters = "orders", "shop", "dead-letters"
    site.do("/topics", name=topic, partitions=3)
    fill(site, topic, group, letters, "plain words")
    refused: dict[str, str] = {}
    for entry in ENTRIES:
        if entry.method != "GET" or entry.raw or entry.path in ELSEWHERE:
            continue
        path = sample(entry.path, topic, quote(group), letters)
        page = site.page(path)
        if page.status != 200:
            refused[path] = str(site.send("GET", f"/api/c/{CLUSTER}{path}").json())
            continue
        check(page)
        assert isinstance(site.api(path.replace("plain=1", "")), dict), path
    assert refused == {}
    assert release in site.page("/brokers").text
    assert "plain words" in site.page(f"/topics/{topic}/messages?plain=1").text


@pytest.mark.timeout(600)
def test_what_is_changed_in_it_is_changed(site: Site) -> None:
    site.do("/topics", name="orders", partitions=2)
    site.do("/topics/orders/settings", **{"set.retention.ms": "1000"})
    assert "1000" in site.page("/topics/orders/settings").text
    site.do("/topics/orders/partitions", partitions=4)
    assert len(site.api("/topics/orders")["partitions"]) == 4
    for number in range(5):
        site.do("/topics/orders/produce", key="k", value=str(number), value_form="text", partition=0)
    site.do("/group/reset", id="shop", topic="orders", to="latest")
    assert site.api("/group?id=shop")
    site.do("/topics/orders/delete", confirm="orders")
    assert site.page("/topics/orders").status == 404
