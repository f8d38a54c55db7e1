"""What the tools say while no broker answers, and when they give up."""

import pytest
from confluent_kafka import KafkaError

from ottla.cli.common.output import CommandError
from ottla.cli.data.broker_presence import ENDLESS, SAY_AGAIN_S, Patience, Waiting
from ottla.cli.data.kafka_clients import SAY_AGAIN_S as REPORT_AGAIN_S
from ottla.cli.data.kafka_clients import ErrorReporter, in_words
from ottla.client.cluster import Address
from ottla.client.presence import Absent

Captured = pytest.CaptureFixture[str]
REFUSED = (Absent(-1, Address("localhost", 9092), "127.0.0.1", "connection refused"),)
UNKNOWN = (Absent(-1, Address("nowhere", 9092), None, "Name or service not known"),)
LINE = "Connection to node -1 (localhost/127.0.0.1:9092) could not be established. Broker may not be available."


def test_the_warning_is_repeated_sparsely(capsys: Captured) -> None:
    waiting = Waiting("localhost:9092", ENDLESS, 0.0)
    said = []
    for tenth in range(int(SAY_AGAIN_S * 25)):
        waiting.heard_nothing(REFUSED, tenth / 10)
        if LINE in capsys.readouterr().err:
            said.append(tenth / 10)
    assert said == [0.0, SAY_AGAIN_S, 2 * SAY_AGAIN_S]


def test_patience_ends_with_its_limit_named(capsys: Captured) -> None:
    waiting = Waiting("localhost:9092", Patience(5.0, "max.block.ms"), 0.0, lost="nothing was sent")
    waiting.heard_nothing(REFUSED, 4.9)
    with pytest.raises(CommandError, match=r"no broker answers at localhost:9092, for 5 s \(max.block.ms\); nothing w"):
        waiting.heard_nothing(REFUSED, 5.0)


def test_a_name_that_nobody_knows_ends_at_once(capsys: Captured) -> None:
    with pytest.raises(CommandError, match=r"No resolvable bootstrap urls given in bootstrap\.servers: nowhere:9092"):
        Waiting("nowhere:9092", ENDLESS, 0.0).heard_nothing(UNKNOWN, 0.0)
    assert "DNS resolution failed for nowhere" in capsys.readouterr().err


def test_one_known_name_is_enough_to_wait() -> None:
    Waiting("nowhere:9092,localhost:9092", ENDLESS, 0.0).heard_nothing((*UNKNOWN, *REFUSED), 0.0)


def test_who_waited_hears_that_it_is_over(capsys: Captured) -> None:
    waiting = Waiting("localhost:9092", ENDLESS, 0.0)
    waiting.heard()
    assert capsys.readouterr().err == ""
    waiting.heard_nothing(REFUSED, 0.1)
    waiting.heard()
    assert capsys.readouterr().err.endswith("note: a broker answers at localhost:9092\n")


def _refused(name: str) -> KafkaError:
    text = f"{name}: Connect to ipv4#127.0.0.1:9092 failed: Connection refused (after 3ms in state CONNECT)"
    return KafkaError(KafkaError._TRANSPORT, text)


def test_a_lost_connection_is_told_in_kafkas_words() -> None:
    line = "({}127.0.0.1:9092) could not be established. Broker may not be available. (Connection refused)"
    assert in_words(_refused("localhost:9092/bootstrap")) == "Connection to node -1 " + line.format("localhost/")
    assert in_words(_refused("sasl_ssl://127.0.0.1:9092/7")) == "Connection to node 7 " + line.format("/")


def test_the_same_trouble_is_reported_once_in_a_while(capsys: Captured) -> None:
    clock = [0.0]
    reporter = ErrorReporter(lambda: clock[0])
    for after_ms in (1, 5, 17):  # librdkafka's words differ only in how long it took
        reporter(KafkaError(KafkaError._RESOLVE, f"a:1/bootstrap: Failed to resolve (after {after_ms}ms in state X)"))
    assert capsys.readouterr().err == "warning: a:1/bootstrap: Failed to resolve\n"
    clock[0] = REPORT_AGAIN_S
    reporter(KafkaError(KafkaError._RESOLVE, "a:1/bootstrap: Failed to resolve"))
    assert "Failed to resolve" in capsys.readouterr().err
