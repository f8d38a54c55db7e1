"""Xinfra Monitor's configuration file: JSON, with lines of comments, from names to services.

What means something here has its effect; what cannot is named with the reason, and what is unknown is an error.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ottla.client.errors import InvalidSetting
from ottla.client.producer_settings import parse_acks
from ottla.client.security_names import is_security
from ottla.client.settings import CLIENT_SETTINGS
from ottla.config.guessing import nearest
from ottla.monitoring.burrow_config import BadConfig
from ottla.monitoring.clients import monitor_client
from ottla.monitoring.endtoend.layout import Wanted
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.endtoend.slo import Objective

Properties = Mapping[str, Any]

_MONITORS = {"SingleClusterMonitor"}
_SERVED = "figures are served by --listen, at /metrics"
_WITHOUT_EFFECT_CLASSES: Mapping[str, str] = {
    "JolokiaService": _SERVED,
    "JettyService": _SERVED,
    "DefaultMetricsReporterService": _SERVED,
    "StatsdMetricsReporterService": _SERVED,
    "GraphiteMetricsReporterService": _SERVED,
    "SignalFxMetricsReporterService": _SERVED,
    "KafkaMetricsReporterService": _SERVED,
}
_JAVA = "there is no JVM here; records are sent and read by Ottla's own client"
_PERCENTILES = "percentiles are exact here"
_WITHOUT_EFFECT: Mapping[str, str] = {
    "zookeeper.connect": "everything is asked of the brokers",
    "produce.producer.class": _JAVA,
    "produce.partitioner.class": _JAVA,
    "produce.producer.id": "each run has an id of its own, so that two monitors do not take each other's records",
    "produce.sync": "records are sent at their times, whatever became of those before",
    "produce.thread.num": "there is one loop, which needs no threads",
    "produce.latency.percentile.max.ms": _PERCENTILES,
    "produce.latency.percentile.granularity.ms": _PERCENTILES,
    "consume.consumer.class": _JAVA,
    "consume.latency.percentile.max.ms": _PERCENTILES,
    "consume.latency.percentile.granularity.ms": _PERCENTILES,
    "topic-management.topicFactory.class.name": _JAVA,
    "topic-management.topicFactory.props": _JAVA,
    "topic-management.preferred.leader.election.check.interval.ms": "leaders are elected at every rebalance",
}
_KNOWN = frozenset(
    {
        "class.name", "topic", "bootstrap.servers", "request.timeout.ms", "produce.record.delay.ms",
        "produce.record.size.byte", "produce.treat.zero.throughput.as.unavailable", "produce.producer.props",
        "consume.latency.sla.ms", "consume.consumer.props", "topic-management.topicManagementEnabled",
        "topic-management.topicCreationEnabled", "topic-management.topicAddPartitionEnabled",
        "topic-management.topicReassignPartitionAndElectLeaderEnabled", "topic-management.replicationFactor",
        "topic-management.partitionsToBrokersRatio", "topic-management.minPartitionNum",
        "topic-management.rebalance.interval.ms", "topic-management.topic.props",
    }
)  # fmt: skip


class XinfraConfig(NamedTuple):
    monitors: tuple[EndToEndSettings, ...]
    without_effect: tuple[str, ...]


def is_xinfra(text: str) -> bool:
    """Whether a file is this kind: JSON begins with a brace, once comments are gone."""
    return _without_comments(text).lstrip().startswith("{")


def read_xinfra(text: str, where: str, objective: Objective) -> XinfraConfig:
    try:
        document = json.loads(_without_comments(text))
    except ValueError as error:
        raise BadConfig(f"{where}: {error}") from None
    return _Reader(document, where, objective).read()


def _without_comments(text: str) -> str:
    """Lines stay where they are, for messages."""
    return "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))


class _Reader:
    def __init__(self, document: Mapping[str, Any], where: str, objective: Objective) -> None:
        self._document = document
        self._where = where
        self._objective = objective
        self._unused: list[str] = []

    def read(self) -> XinfraConfig:
        monitors: dict[str, Properties] = {}
        commits: list[Properties] = []
        probes_topics = False
        for name, properties in self._document.items():
            kind = str(properties.get("class.name", "")).rpartition(".")[2]
            if kind in _MONITORS:
                monitors[name] = properties
            elif kind == "OffsetCommitService":
                commits.append(properties)
            elif kind == "ClusterTopicManipulationService":
                probes_topics = True
            elif kind in _WITHOUT_EFFECT_CLASSES:
                self._unused.append(f"{name}: {_WITHOUT_EFFECT_CLASSES[kind]}")
            else:
                known = ", ".join(sorted({*_MONITORS, "OffsetCommitService", "ClusterTopicManipulationService"}))
                raise BadConfig(f"{self._where}: {name}: class.name is one of {known}, not {kind or 'nothing'}")
        if not monitors:
            raise BadConfig(f"{self._where}: no SingleClusterMonitor says what to do")
        group = next((str(each.get("consumer.props", {}).get("group.id", "")) for each in commits), "")
        settings = [self._monitor(name, each, group) for name, each in monitors.items()]
        if not commits:
            settings = [each._replace(commit_s=0.0) for each in settings]
        if not probes_topics:
            settings = [each._replace(topic_probe_s=0.0) for each in settings]
        return XinfraConfig(tuple(settings), tuple(self._unused))

    def _monitor(self, name: str, given: Properties, group: str) -> EndToEndSettings:
        for key in given:
            if key in _WITHOUT_EFFECT:
                self._unused.append(f"{name}: {key}: {_WITHOUT_EFFECT[key]}")
            elif key not in _KNOWN:
                close = nearest(key, _KNOWN)
                raise BadConfig(
                    f"{self._where}: {name}: {key} is not known{f'; did you mean {close}?' if close else ''}"
                )
        managed = self._flag(name, given, "topic-management.topicManagementEnabled", default=True)
        wanted = Wanted(
            self._number(name, given, "topic-management.partitionsToBrokersRatio", 1.0),
            int(self._number(name, given, "topic-management.minPartitionNum", 1)),
            int(self._number(name, given, "topic-management.replicationFactor", 1)),
            managed and self._flag(name, given, "topic-management.topicCreationEnabled", default=True),
            managed and self._flag(name, given, "topic-management.topicAddPartitionEnabled", default=True),
            managed
            and self._flag(name, given, "topic-management.topicReassignPartitionAndElectLeaderEnabled", default=True),
        )
        found = EndToEndSettings(name, self._client(name, given))
        producer: Properties = given.get("produce.producer.props", {})
        consumer: Properties = given.get("consume.consumer.props", {})
        try:
            acks = parse_acks(str(producer.get("acks", "all")))
        except InvalidSetting as error:
            raise BadConfig(f"{self._where}: {name}: produce.producer.props: {error}") from None
        if acks == 0:
            raise BadConfig(f"{self._where}: {name}: with acks=0 nobody knows what was written: write all or 1")
        return found._replace(
            topic=str(given.get("topic", found.topic)),
            wanted=wanted,
            topic_configs={key: str(value) for key, value in given.get("topic-management.topic.props", {}).items()},
            delay_s=self._number(name, given, "produce.record.delay.ms", 100) / 1000,
            record_bytes=int(self._number(name, given, "produce.record.size.byte", 100)),
            acks=acks,
            latency_max_s=self._number(name, given, "consume.latency.sla.ms", 20_000) / 1000,
            zero_is_unavailable=self._flag(name, given, "produce.treat.zero.throughput.as.unavailable", default=True),
            rebalance_s=self._number(name, given, "topic-management.rebalance.interval.ms", 600_000) / 1000,
            group=group or str(consumer.get("group.id", "")) or found.group,
            objective=self._objective,
        )

    def _client(self, name: str, given: Properties) -> Any:
        settings: dict[str, str] = {}
        if "request.timeout.ms" in given:
            settings["request.timeout.ms"] = str(given["request.timeout.ms"])
        for part in ("produce.producer.props", "consume.consumer.props"):
            for key, value in given.get(part, {}).items():
                if is_security(key) or key in CLIENT_SETTINGS:
                    settings[key] = str(value)
                elif key not in ("acks", "group.id"):
                    self._unused.append(f"{name}: {part}: {key}: {_JAVA}")
        try:
            return monitor_client(str(given.get("bootstrap.servers", "")), settings)
        except InvalidSetting as error:
            raise BadConfig(f"{self._where}: {name}: {error}") from None

    def _number(self, name: str, given: Properties, key: str, default: float) -> float:
        """Numbers may stand in quotes there."""
        try:
            value = float(given.get(key, default))
        except (TypeError, ValueError):
            raise BadConfig(f"{self._where}: {name}: {key} is a number, not {given[key]!r}") from None
        if value <= 0:
            raise BadConfig(f"{self._where}: {name}: {key} is more than 0, not {value:g}")
        return value

    def _flag(self, name: str, given: Properties, key: str, *, default: bool) -> bool:
        value = given.get(key, default)
        if str(value).lower() not in ("true", "false"):
            raise BadConfig(f"{self._where}: {name}: {key} is true or false, not {value!r}")
        return str(value).lower() == "true"
