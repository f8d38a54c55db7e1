"""What the kit asks a cluster, whichever of its brokers goes away meanwhile."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from ottla.testing import cluster
from ottla.testing.cluster import RunningCluster
from ottla.testing.zookeeper import ZooKeeperEnsemble


class ForgetfulAdmin:
    """As librdkafka is: what it keeps for a broker that went away is never answered, what is asked next is."""

    def __init__(self, unanswered: int) -> None:
        self.unanswered = unanswered
        self.metadata = SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: "the partition"})})

    def list_topics(self, *, timeout: float) -> Any:
        if self.unanswered:
            self.unanswered -= 1
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return self.metadata


@pytest.fixture
def running(tmp_path: Path) -> RunningCluster:
    return RunningCluster(tmp_path, brokers=3, zookeeper=ZooKeeperEnsemble(tmp_path))


def test_a_request_that_went_down_with_its_broker_is_asked_again(running: RunningCluster) -> None:
    admin: Any = ForgetfulAdmin(unanswered=2)
    running._admin = admin
    assert running.metadata() is admin.metadata
    admin.unanswered = 1
    assert dict(running.partitions("t")) == {("t", 0): "the partition"}


def test_one_that_nobody_answers_is_told_to_be_so(running: RunningCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    admin: Any = ForgetfulAdmin(unanswered=1_000_000)
    running._admin = admin
    monkeypatch.setattr(cluster, "METADATA_SECONDS_MAX", 0.05)
    assert running.partitions_if_told("t") == {}
    with pytest.raises(AssertionError, match="a broker tells the metadata"):
        running.metadata()
