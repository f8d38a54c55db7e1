"""Write docs/metrics.md from the declared metrics of brokers and pipelines."""

import sys
from pathlib import Path

from ottla.telemetry.catalogue import METRICS
from ottla.telemetry.metric import Metric
from ottla.telemetry.pipelines import PIPELINE_METRICS

TARGET = Path(__file__).parent.parent / "docs/metrics.md"

HEAD = """# Metrics

With `metrics.listener=127.0.0.1:9404` (or a port alone) a broker serves what it counts to Prometheus:

    ottla broker --set metrics.listener=9404
    curl http://127.0.0.1:9404/metrics

`ottla up` and `ottla cluster` do that by themselves, on a free port of this machine that they name; `--set
metrics.listener=` turns it off. Whoever accepts OpenMetrics gets it. Nobody is asked who they are unless
`metrics.listener.login` says so ([security](security.md)): without it, let only your monitoring reach that address.
Inside the process `node.telemetry.snapshot()` reads the same.

## Names

Names are those that jmx_exporter makes of Kafka's MBeans, which is what most dashboards ask for; a meter (`..._total`)
is there under its MBean's own name, too (`...persec`), which is what the others ask for. Of a histogram there are
`{quantile="0.50"}`, `0.75`, `0.95`, `0.98`, `0.99` and `0.999`, and its count as `..._count` and without a suffix.
Traffic is told by topic, without a series for all topics beside it: sums would count everything twice.
What 28 public dashboards and files of alert rules (Strimzi's, Confluent's, Grafana's, kafka_exporter's and others) ask
for is listed in `compat/public_queries.py`, with what of it is not here and why; a third and a fourth spelling of the
same, `...persec_count` and `...persec_total`, would double what is scraped and are not served.
`kafka_topic_partition_*` and `kafka_consumergroup_*` are kafka_exporter's names; they are left out, all of them, where
a broker has more partitions or committed offsets than `metrics.offsets.max`. Lag is told by a group's coordinator, for
partitions that it has a replica of.

## What the figures mean

- Quantiles, means and extremes are of the last five minutes, in intervals of 30 seconds, and exact to 1.6 %. Nothing
  decays, and a maximum falls again; in Kafka it never does.
- Every request is timed while there are few. With more than a thousand a second one in 32 stands for the others, and
  those that took 10 ms or longer are timed all the same and stand for themselves: the tail is never missed. Only where
  more than a thousand of those come in a second, too, does one in 32 of them stand for the others.
- A rate (`..._rate`) is over the last minute. There is one loop, so network and request handlers are idle
  for the same share of it.
- Nothing is measured for a scrape but what is read from the broker's state; requests pay for plain additions
  (`python -m benchmarks.request_cost --metrics`, `python -m benchmarks.scrape`).

## JMX

The same figures are MBeans over [Jolokia's](https://jolokia.org) HTTP protocol, under `/jolokia` of the same listener:
`read`, `search`, `list` and `version`, by GET and POST, with patterns. Telegraf's `jolokia2` reads them, and so does
Kafka's tool:

    kafka-jmx.sh --jmx-url http://127.0.0.1:9404 --one-time true \\
        --object-name kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec --attributes Count,OneMinuteRate

Java's own remote protocol (RMI) is not spoken.

## Metrics of clients

Clients that speak KIP-714 (librdkafka from 2.5, Java from 3.7) push their own metrics when somebody subscribes to them:

    kafka-client-metrics.sh --alter --name all --metrics '*' --interval 60000

They are in the same output as `ottla_client_...`, with `client_id` and `client_instance_id`; at most
`metrics.client.series.max` of them. A client that is silent for three intervals is forgotten.

## Logs

`--log-format json` (or `OTTLA_LOG_FORMAT=json`) writes a JSON object a line. Levels change while a broker runs:

    kafka-configs.sh --alter --entity-type broker-loggers --entity-name 1 --add-config ottla.broker.controller=DEBUG

`request.log.slow.ms=500` logs every request that took longer, with the parts of its time (`kafka.request.slow`).

## Not here

Of the metrics that Kafka 4.3 documents these have nothing to count: `raft-metrics`, `broker-metadata-metrics`,
`MetadataLoader` and `SnapshotEmitter` (metadata is in SQLite or ZooKeeper), share groups, tiered storage, fetch
conversions and `TemporaryMemoryBytes` (nothing is converted for old clients),
`ElectionFromEligibleLeaderReplicasPerSec`, `TimedOutBrokerHeartbeatCount`, `LastAppliedRecordLagMs`, the event queue of
the group coordinator, `NumGroupsDead` (a dead group is gone), `DeprecatedRequestsPerSec`, and what is about the JVM.

These could be counted and are not: `remainingSegmentsToRecover` (a log is opened as a whole: `remaininglogstorecover`
falls), `MinFetchRate` of the fetchers (`replicafetchermanager_maxlag` says what it is asked for).

## All of a broker

Written by `make docs` from `src/ottla/telemetry`; tests fail when it is not current, and when a metric is listed that
no test moves.

| name | MBean and attribute | kind | unit | what it says |
|---|---|---|---|---|
"""

PIPELINES = """
## Of pipelines

`ottla pipeline run` serves these at `/metrics` of where it listens (`--port`, [pipelines.md](pipelines.md)). Of each
query they say what the driver has counted and what Spark reports after every batch: how fast rows came and were worked
on, which part of a batch took how long, what is kept as state, where the watermark is. A gauge speaks of the last
batch; counters begin anew with the driver. `ottla_spark_...` are of the driver's Spark as a whole, and are asked of it
for each scrape.

| name | kind | unit | what it says |
|---|---|---|---|
"""


def render() -> str:
    brokers = "".join(_row(METRICS[name]) for name in sorted(METRICS))
    return HEAD + brokers + PIPELINES + "".join(_plain_row(PIPELINE_METRICS[name]) for name in sorted(PIPELINE_METRICS))


def _row(metric: Metric) -> str:
    labels = "{" + ",".join(metric.labels) + "}" if metric.labels else ""
    mbean = f"`{metric.mbean}` `{metric.attribute}`"
    return f"| `{metric.name}{labels}` | {mbean} | {metric.kind.value} | {metric.unit} | {metric.doc} |\n"


def _plain_row(metric: Metric) -> str:
    """Without an MBean."""
    labels = "{" + ",".join(metric.labels) + "}" if metric.labels else ""
    return f"| `{metric.name}{labels}` | {metric.kind.value} | {metric.unit} | {metric.doc} |\n"


def main() -> int:
    TARGET.write_text(render())
    print(f"{len(METRICS) + len(PIPELINE_METRICS)} metrics written to docs/{TARGET.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
