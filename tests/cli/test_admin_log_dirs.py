"""kafka-reassign-partitions moves a replica to another disk of its broker, and kafka-log-dirs shows it on its way."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.main import main
from ottla.testing import broker
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until

TOPIC = "heavy"
RECORDS = 8000  # several times what is copied in one go
LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"


def test_a_replica_moves_slowly_and_is_seen_on_its_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directories = [str((tmp_path / name).resolve()) for name in ("one", "two")]
    with broker({"log.dirs": ",".join(directories)}) as running:

        def tool(name: str, *arguments: str) -> str:
            assert main([name, "--bootstrap-server", running.bootstrap, *arguments]) == 0
            return capsys.readouterr().out

        def places() -> dict[tuple[str, bool], dict[str, object]]:
            (shown,) = json.loads(tool("log-dirs", "--describe", "--topic-list", TOPIC, "--json"))["brokers"]
            return {
                (directory["logDir"], partition["isFuture"]): partition
                for directory in shown["logDirs"]
                for partition in directory["partitions"]
            }

        def limit(bytes_per_second: str) -> None:
            add = ("--alter", "--entity-type", "brokers", "--entity-default", "--add-config")
            tool("configs", *add, f"{LIMIT}={bytes_per_second}")

        tool("topics", "--create", "--topic", TOPIC, "--partitions", "1")
        producer = Producer({"bootstrap.servers": running.bootstrap, "linger.ms": 5}, logger=quiet)
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number + b"." * 500)
        assert producer.flush(30) == 0
        ((home, future),) = places()
        assert not future
        (target,) = set(directories) - {home}
        limit("50000")
        plan = tmp_path / "plan.json"
        entry = {"topic": TOPIC, "partition": 0, "replicas": [1], "log_dirs": [target]}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        tool("reassign-partitions", "--execute", "--reassignment-json-file", str(plan))
        found = places()
        assert found.keys() == {(home, False), (target, True)}
        lag = found[target, True]["offsetLag"]
        assert isinstance(lag, int)
        assert 0 < lag <= RECORDS
        assert found[home, False]["offsetLag"] == 0
        limit("1000000000")
        wait_until(lambda: places().keys() == {(target, False)}, "the replica has moved", seconds=60)
        verified = tool("reassign-partitions", "--verify", "--reassignment-json-file", str(plan))
        assert f"Reassignment of replica {TOPIC}-0-1 completed successfully." in verified
