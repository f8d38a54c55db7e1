"""Burrow's configuration file is read; what has no effect is named, what is wrong is an error that says what to do."""

from pathlib import Path

import pytest

from ottla.cli.common.options import read_text
from ottla.model.errors import OttlaError
from ottla.monitoring.burrow_config import BurrowConfig, read_burrow
from ottla.monitoring.lag.notifiers import Email, Webhook
from ottla.monitoring.lag.rules import Rules, Status

FILE = """
[general]
pidfile="burrow.pid"

[client-profile.secure]
client-id="burrow-test"
kafka-version="0.10.0"
tls="own"
sasl="me"

[tls.own]
cafile="/etc/ca.pem"
noverify=true

[sasl.me]
username="burrow"
password="secret"
mechanism="SCRAM-SHA-256"

[cluster.local]
class-name="kafka"
servers=[ "kafka01:9093", "kafka02:9093" ]
client-profile="secure"
topic-refresh=120
offset-refresh=30

[consumer.local]
class-name="kafka"
cluster="local"
servers=[ "kafka01:9093" ]
group-denylist="^(console-consumer-|quick-).*$"

[httpserver.default]
address="127.0.0.1:8000"

[storage.default]
class-name="inmemory"
workers=20
intervals=15
expire-group=604800
min-distance=1

[notifier.hook]
class-name="http"
url-open="http://localhost:1467/v1/event"
url-close="http://localhost:1467/v1/event?id={{.ID}}"
extras={ app="burrow" }
method-close="DELETE"
send-close=true
threshold=3
send-interval=30

[notifier.mail]
class-name="email"
server="localhost"
port=587
from="burrow@example.com"
to="ops@example.com, more@example.com"
"""


def read(text: str) -> BurrowConfig:
    return read_burrow(text, "burrow.toml", read_text)


def test_what_is_said_has_its_effect() -> None:
    found = read(FILE)
    (watch,) = found.watches
    assert (watch.name, watch.refresh_s, watch.deny) == ("local", 30, "(?:^(console-consumer-|quick-).*$)")
    assert watch.client.bootstrap == "kafka01:9093,kafka02:9093"
    assert watch.client.client_id == "burrow-test"
    assert watch.client.security.tls is not None
    assert watch.client.security.sasl is not None
    assert watch.client.security.sasl.mechanism == "SCRAM-SHA-256"
    assert watch.rules == Rules(intervals=15, min_distance_ms=1000)
    hook, mail = found.notifiers
    assert isinstance(hook, Webhook)
    assert (hook.rule.threshold, hook.rule.interval_ms, hook.rule.send_close) == (Status.ERR, 30_000, True)
    assert isinstance(mail, Email)
    assert mail.rule.threshold is Status.WARN
    assert str(found.listeners[0].address) == "127.0.0.1:8000"


def test_what_has_no_effect_is_named() -> None:
    named = [each.split(":")[0] for each in read(FILE).without_effect]
    assert named == [
        "[general]", "client-profile.secure.kafka-version", "cluster.local.topic-refresh", "consumer.local.servers",
        "storage.default.workers",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("offset-refresh=30", "offset-refrehs=30", "offset-refrehs is not known; did you mean offset-refresh?"),
        ("offset-refresh=30", "offset-refresh=0", "cluster.local.offset-refresh is more than 0, not 0"),
        ("offset-refresh=30", 'offset-refresh="a"', "cluster.local.offset-refresh is a number, not 'a'"),
        ('local]\nclass-name="kafka"', 'local]\nclass-name="pulsar"', "class-name is kafka here, not 'pulsar'"),
        ('client-profile="secure"', 'client-profile="none"', "names [client-profile.none], which is not there"),
        ("threshold=3", "threshold=9", "threshold is 1 (OK), 2 (WARN) or 3 (ERR), not 9"),
        ('server="localhost"', "", "notifier.mail.server is missing"),
        ("[storage.default]", "[storages.default]", "the section [storages] is not known"),
        ("[general]", "[general", "burrow.toml: "),
        ("event?id={{.ID}}", "event?id={{.Nope}}", "there is no .Nope"),
        ("event?id={{.ID}}", "event?id={{nope .ID}}", "there is no function nope"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_an_error(before: str, after: str, told: str) -> None:
    assert before in FILE
    with pytest.raises(OttlaError) as caught:
        read(FILE.replace(before, after))
    assert told in str(caught.value)


def test_consumers_of_another_age_are_named_and_left_out() -> None:
    old = '[consumer.old]\nclass-name="kafka_zk"\nzookeeper-path="/kafka"\ngroup-denylist="x"\n'
    found = read(FILE + old)
    assert "x" not in found.watches[0].deny
    assert any(each.startswith("[consumer.old]") for each in found.without_effect)


def test_templates_are_read_from_files(tmp_path: Path) -> None:
    template = tmp_path / "open.tmpl"
    template.write_text("{{range}}")
    with pytest.raises(OttlaError, match=r"open\.tmpl"):
        read(FILE.replace("threshold=3", f'threshold=3\ntemplate-open="{template}"'))
