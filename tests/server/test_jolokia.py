"""Jolokia's protocol on the listener for metrics, as Telegraf and kafka-jmx speak it."""

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.cli.main import run
from ottla.cli.names import BY_CLASS
from ottla.testing import RunningBroker
from ottla.testing import broker as broker_with

BYTES_IN = "kafka.server:name=BytesInPerSec,topic=news,type=BrokerTopicMetrics"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with broker_with(settings={"metrics.listener": "127.0.0.1:0"}) as running:
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for topic in ("news", "olds"):
            producer.produce(topic, b"x" * 100)
        assert producer.flush(30) == 0
        yield address(running) + "/jolokia"


def address(broker: RunningBroker) -> str:
    return str(re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1])


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.status == 200
        return json.load(answer)


def post(url: str, body: object) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return get(urllib.request.Request(url, data))  # type: ignore[arg-type]


def test_telegraf_reads_an_array(url: str) -> None:
    """What its jolokia2 plug-in sends, and what it needs of the answer."""
    asked = [
        {"type": "read", "mbean": "kafka.server:name=*,type=BrokerTopicMetrics", "attribute": ["Count"]},
        {"type": "read", "mbean": "kafka.server:name=*,topic=*,type=BrokerTopicMetrics", "attribute": ["Count"]},
        {"type": "read", "mbean": "kafka.network:name=TotalTimeMs,request=Produce,type=RequestMetrics"},
        {"type": "read", "mbean": "kafka.server:name=NoSuchThing,type=BrokerTopicMetrics"},
    ]
    replies = post(url + "/read", asked)
    assert [reply["request"] for reply in replies] == asked
    assert [reply["status"] for reply in replies] == [200, 200, 200, 404]
    everything, topics, times, missing = replies
    news = topics["value"][BYTES_IN]["Count"]
    assert news > 100
    assert everything["value"]["kafka.server:name=BytesInPerSec,type=BrokerTopicMetrics"]["Count"] > news
    assert times["value"]["Count"] >= 2
    assert times["value"]["99thPercentile"] >= times["value"]["50thPercentile"] > 0
    assert missing["error_type"] == "javax.management.InstanceNotFoundException"
    assert all(isinstance(reply["timestamp"], int) for reply in replies)


def test_get(url: str) -> None:
    assert get(f"{url}/read/{BYTES_IN}/Count")["value"] > 100
    both = get(f"{url}/read/kafka.server:type=BrokerTopicMetrics,topic=news,name=BytesInPerSec/Count,MeanRate")["value"]
    assert list(both) == ["Count", "MeanRate"], "whatever order the keys of the name stand in"
    assert get(f"{url}/search/kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=*")["value"] == [
        BYTES_IN,
        BYTES_IN.replace("news", "olds"),
    ]
    listed = get(f"{url}/list/kafka.server/name=BytesInPerSec,topic=news,type=BrokerTopicMetrics")["value"]
    assert listed["attr"]["Count"] == {"type": "long", "desc": "Count", "rw": False}
    assert {"kafka.server", "kafka.network", "kafka.controller", "kafka.log"} <= get(f"{url}/list")["value"].keys()
    for path in ("", "/", "/version"):
        assert get(url + path)["value"]["agent"] == "ottla"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/read/kafka.server:type=None", 404),
        (f"/read/{BYTES_IN}/NoAttribute", 404),
        (f"/read/{BYTES_IN}/Count/inside", 400),
        ("/read/nonsense", 400),
        ("/exec/kafka.server:type=X/op", 400),
    ],
)
def test_errors_stand_inside_a_reply(url: str, path: str, status: int) -> None:
    reply = get(url + path)
    assert reply["status"] == status
    assert reply["error"].startswith(reply["error_type"])
    assert reply["request"]["type"] == path.split("/")[1]


def test_bodies_that_are_no_requests(url: str) -> None:
    assert post(url, b"{")["status"] == 400
    assert post(url, [1, {"type": "version"}])[0]["status"] == 400
    assert post(url, {"type": "version"})["status"] == 200


@pytest.mark.parametrize("java_class", ["kafka.tools.JmxTool", "org.apache.kafka.tools.JmxTool"])
def test_jmx_tool(url: str, java_class: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = url.removeprefix("http://").removesuffix("/jolokia")
    command = BY_CLASS[java_class]
    arguments = [
        "--jmx-url", f"service:jmx:rmi:///jndi/rmi://{where}/jmxrmi",
        "--object-name", "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=news",
        "--attributes", "Count", "--one-time", "true",
    ]  # fmt: skip
    assert run(command, arguments, "jmx") == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head == '"time","kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=news:Count"'
    assert re.fullmatch(r"\d{13},\d{3}", line)
    arguments[3] = "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=*"
    assert run(command, [*arguments, "--report-format", "properties", "--date-format", "yyyy-MM-dd"], "jmx") == 0
    lines = capsys.readouterr().out.split()
    assert re.fullmatch(r"time=\d{4}-\d\d-\d\d", lines[0])
    assert [re.sub(r"\d+$", "N", each) for each in lines[1:]] == [
        f"{BYTES_IN}:Count=N",
        f"{BYTES_IN.replace('news', 'olds')}:Count=N",
    ]
