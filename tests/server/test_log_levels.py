"""Levels of loggers change while the broker runs: the resource that kafka-configs calls broker-loggers."""

import json
import re

import pytest
from confluent_kafka.admin import AdminClient

from ottla.cli.common.output import CommandError
from ottla.cli.main import run
from ottla.cli.names import BY_NAME
from ottla.testing import RunningBroker
from ottla.testing import broker as broker_with
from ottla.testing.waiting import wait_until

LOGGER = "ottla.broker.replication.partition"


def configs(broker: RunningBroker, *arguments: str) -> None:
    given = ["--bootstrap-server", broker.bootstrap, *arguments]
    assert run(BY_NAME["configs"], given, "kafka-configs") == 0


def test_levels_change_at_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    with broker_with() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        which = ("--entity-type", "broker-loggers", "--entity-name", "1")
        configs(broker, "--describe", *which)
        assert f"  {LOGGER}=INFO " in capsys.readouterr().out
        configs(broker, "--alter", *which, "--add-config", f"{LOGGER}=DEBUG")
        configs(broker, "--describe", "--broker-logger", "1")
        assert f"  {LOGGER}=DEBUG " in capsys.readouterr().out
        admin.list_topics("made", timeout=30)
        wait_until(lambda: "made-0: Leadership change" in broker.log_text(), "what is logged at DEBUG is in the log")
        configs(broker, "--alter", *which, "--delete-config", LOGGER)
        configs(broker, "--describe", *which)
        assert f"  {LOGGER}=INFO " in capsys.readouterr().out
        for wrong in (f"{LOGGER}=LOUD", "no.such.logger=INFO"):
            with pytest.raises(CommandError):
                configs(broker, "--alter", *which, "--add-config", wrong)
        with pytest.raises(CommandError, match="root"):
            configs(broker, "--alter", *which, "--delete-config", "root")


def test_lines_of_json_and_slow_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_LOG_FORMAT", "json")
    with broker_with(settings={"request.log.slow.ms": "1"}) as broker:
        AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics("made", timeout=30)
        wait_until(lambda: "Slow request" in broker.log_text(), "a request took longer than a millisecond")
        lines = [json.loads(line) for line in broker.log_text().splitlines() if line.startswith("{")]
        assert {"time", "level", "logger", "message"} <= lines[0].keys()
        slow = next(line for line in lines if line["message"].startswith("Slow request"))
        assert slow["level"] == "WARN"
        parts = json.loads(re.sub(r"^Slow request:", "", slow["message"]))
        assert parts["totalTimeMs"] >= 1
        assert {"requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "sendTimeMs"} <= parts.keys()
