"""For each of our alert rules a story: series, a moment at which it is quiet yet, one at which it fires, what it says.

`promtool test rules` plays them, a sample a minute. `0x5 3x10` is Prometheus's way to write 0 and five more of it, then
3 and ten more: the trouble begins at the sixth minute.
"""

from typing import Any, NamedTuple

from ottla.monitoring.dashboards.rules import Rule, written


class Case(NamedTuple):
    alert: str
    series: dict[str, str]
    quiet: str
    fires: str
    labels: dict[str, str]
    summary: str


_BROKER = {"instance": "kafka-1:9404"}
_GROUP = {"cluster": "c", "consumer_group": "g"}
_SLI = {"name": "c", "sli": "write", "window": "1h"}
_SLOW_SLI = {"name": "c", "sli": "write", "window": "6h"}
_QUERY = {"pipeline": "p", "query": "q"}


def _name(metric: str, **labels: str) -> str:
    return metric + "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _broker(metric: str, **more: str) -> str:
    return _name(metric, **_BROKER, **more)


_DISK = {"cluster": "c", "broker": "1", "directory": "/d"}
_SIZE = {_name("ottla_monitor_log_directory_bytes", **_DISK): "1000x200"}

CASES = (
    Case("KafkaControllerCount", {_broker("kafka_controller_kafkacontroller_activecontrollercount"): "1x5 0x10"},
         "6m", "7m", {}, "0 brokers are the controller; one has to be"),
    Case("KafkaOfflinePartitions", {_broker("kafka_controller_kafkacontroller_offlinepartitionscount"): "0x5 3x10"},
         "6m", "7m", {}, "3 partitions have no leader: nobody can write to or read from them"),
    Case("KafkaUnderMinIsr", {_broker("kafka_server_replicamanager_underminisrpartitioncount"): "0x5 2x10"},
         "6m", "7m", _BROKER, "2 partitions of kafka-1:9404 have fewer in-sync replicas than min.insync.replicas"),
    Case("KafkaUnderReplicated", {_broker("kafka_server_replicamanager_underreplicatedpartitions"): "0x5 2x10"},
         "10m", "11m", _BROKER, "2 partitions of kafka-1:9404 have replicas that are not in sync"),
    Case("KafkaUncleanElections",
         {_broker("kafka_controller_controllerstats_uncleanleaderelections_total"): "0x5 1x10"},
         "5m", "6m", {}, "a leader was elected that did not have all records"),
    Case("KafkaOfflineLogDirectory", {_broker("kafka_log_logmanager_offlinelogdirectorycount"): "0x5 1x10"},
         "6m", "7m", _BROKER, "1 log directories of kafka-1:9404 have failed"),
    Case("KafkaIsrFlapping", {_broker("kafka_server_replicamanager_isrshrinks_total"): "0x5 0+6x60"},
         "15m", "40m", _BROKER, "replicas of kafka-1:9404 leave the in-sync replicas again and again"),
    Case("KafkaLeaderImbalance",
         {_broker("kafka_controller_kafkacontroller_preferredreplicaimbalancecount"): "0x5 4x60"},
         "35m", "36m", {}, "4 partitions are not led by their preferred replicas"),
    Case("KafkaScrapeDown", {_name("up", job="kafka", **_BROKER): "1x5 0x10"},
         "6m", "7m", {"job": "kafka", **_BROKER}, "kafka-1:9404 does not answer Prometheus"),
    Case("KafkaFileDescriptors",
         {_broker("process_open_fds"): "10x5 90x10", _broker("process_max_fds"): "100x20"},
         "10m", "11m", _BROKER, "kafka-1:9404 has used 90% of its file descriptors"),
    Case("ZooKeeperSlow", {_name("zookeeper_avgrequestlatency", server="z"): "1x5 20x10"},
         "10m", "11m", {"server": "z"}, "ZooKeeper z takes 20 ms on average"),
    Case("ZooKeeperDown", {_name("zookeeper_up", server="z"): "1x5 0x10"},
         "6m", "7m", {"server": "z"}, "ZooKeeper z does not answer"),
    # One partition stalls while another is read again from an earlier place: neither hides the other.
    Case("ConsumerGroupStalled",
         {_name("burrow_kafka_topic_partition_status", partition="0", **_GROUP): "1x5 5x10",
          _name("burrow_kafka_topic_partition_status", partition="1", **_GROUP): "1x5 6x10"},
         "6m", "7m", _GROUP, "group g lives and does not move in 1 partitions"),
    Case("ConsumerGroupStopped",
         {_name("kafka_burrow_partition_status", partition="0", cluster="c", group="g"): "2x5 5x10",
          _name("kafka_burrow_partition_status", partition="1", cluster="c", group="g"): "2x5 7x10"},
         "7m", "8m", {"cluster": "c", "group": "g"}, "group g does not commit any more, and records wait for it"),
    Case("ConsumerGroupRewound", {_name("burrow_kafka_topic_partition_status", partition="0", **_GROUP): "1x5 6x10"},
         "5m", "6m", _GROUP, "group g went back to records that it has had"),
    Case("ConsumerGroupFallsBehind", {_name("burrow_kafka_consumer_status", **_GROUP): "1x5 2x20"},
         "20m", "21m", _GROUP, "group g reads more slowly than others write"),
    Case("ConsumerGroupLate", {_name("ottla_monitor_consumer_lag_seconds", **_GROUP): "1x5 900x20"},
         "10m", "11m", _GROUP, "the oldest unread record of group g is 15m 0s old"),
    Case("LogDirectoryFillsUp", {_name("ottla_monitor_log_directory_free_bytes", **_DISK): "140-1x80", **_SIZE},
         "10m", "30m", _DISK, "/d of broker 1 will be full within a day"),
    Case("LogDirectoryFull", {_name("ottla_monitor_log_directory_free_bytes", **_DISK): "500x5 20x10", **_SIZE},
         "6m", "7m", _DISK, "/d of broker 1 has 2% left"),
    Case("MonitorSeesNothing",
         {_name("ottla_monitor_looks_failed_total", cluster="c"): "0x10 0+6x30",
          _name("ottla_monitor_looks_total", cluster="c"): "0+6x60"},
         "12m", "25m", {"cluster": "c"}, "the monitor cannot ask all brokers of c"),
    Case("RecordsLost", {_name("kmf_services_consume_service_records_lost_total", name="c"): "0x15 7x10"},
         "15m", "20m", {"name": "c"}, "about 7 acknowledged records of c are gone"),
    Case("ErrorBudgetBurnsFast",
         {_name("ottla_monitor_burn_rate", **_SLI): "1x5 20x10",
          _name("ottla_monitor_burn_rate", **{**_SLI, "window": "5m"}): "1x5 20x2 1x10"},
         "5m", "7m", _SLI, "write of c uses up its error budget 20 times too fast"),
    Case("ErrorBudgetBurns",
         {_name("ottla_monitor_burn_rate", **_SLOW_SLI): "1x5 8x10",
          _name("ottla_monitor_burn_rate", **{**_SLOW_SLI, "window": "30m"}): "1x5 8x2 1x10"},
         "5m", "7m", _SLOW_SLI, "write of c uses up its error budget 8 times too fast"),
    Case("PartitionUnavailable",
         {_name("ottla_monitor_partition_availability", name="c", partition="0", leader="2"): "1x5 0.25x10"},
         "5m", "7m", {"name": "c", "partition": "0", "leader": "2"}, "broker 2 takes 25% of the records sent to it"),
    Case("PipelineFailed",
         {_name("ottla_pipeline_state", state="running", **_QUERY): "1x5 _x10",
          _name("ottla_pipeline_state", state="failed", **_QUERY): "_x6 1x10"},
         "5m", "6m", {"state": "failed", **_QUERY}, "query q of pipeline p has failed and is not started again"),
    Case("PipelineRestarts", {_name("ottla_pipeline_restarts_total", **_QUERY): "0x15 2x3 5x10"},
         "18m", "20m", _QUERY, "query q of pipeline p was started again about 5 times in a quarter of an hour"),
    # Between the fifth minute and the fifteenth a long batch runs, which is no standstill.
    Case("PipelineStalled",
         {_name("ottla_pipeline_lag_records", **_BROKER, **_QUERY): "70x60",
          _name("ottla_pipeline_batches_total", **_BROKER, **_QUERY): "0+1x5 5x60",
          _broker("ottla_spark_running_tasks"): "1x15 0x60"},
         "29m", "32m", {**_BROKER, **_QUERY}, "query q of pipeline p finishes no batch, and 70 records wait for it"),
    Case("PipelineFallsBehind", {_name("ottla_pipeline_lag_records", **_QUERY): "0x5 10+10x60"},
         "30m", "55m", _QUERY, "query q of pipeline p works more slowly than others write"),
    Case("PipelineDeadLetters", {_name("ottla_pipeline_dead_letters_total", **_QUERY): "4x15 8x20"},
         "15m", "20m", _QUERY, "query q of pipeline p could not use about 4 records in the last ten minutes"),
    Case("PipelineLateRows",
         {_name("ottla_pipeline_late_rows_total", **_QUERY): "0x5 0+5x60",
          _name("ottla_pipeline_input_rows_total", **_QUERY): "0+100x60"},
         "15m", "40m", _QUERY, "5% of the rows of q of pipeline p come behind its watermark and are left out"),
    Case("PipelineWatermarkStands",
         {_name("ottla_pipeline_input_rows_total", **_QUERY): "0+100x100",
          _name("ottla_pipeline_watermark_timestamp_seconds", **_QUERY): "1000+60x5 1300x100"},
         "30m", "60m", _QUERY,
         "the watermark of q of pipeline p does not move though rows come: no window closes, and state only grows"),
    Case("PipelineMemory",
         {_broker("ottla_spark_heap_bytes"): "300 900 300 900x30", _broker("ottla_spark_heap_max_bytes"): "1000x60"},
         "15m", "25m", _BROKER, "Spark's driver at kafka-1:9404 uses 90% of its heap"),
)  # fmt: skip


def document(rules_file: str) -> dict[str, Any]:
    """What `promtool test rules` reads, as JSON, which is YAML."""
    rules = {rule.alert: rule for group in written().values() for rule in group}
    return {
        "rule_files": [rules_file],
        "evaluation_interval": "1m",
        "tests": [_test(case, rules[case.alert]) for case in CASES],
    }


def _test(case: Case, rule: Rule) -> dict[str, Any]:
    expected = {
        "exp_labels": {"severity": rule.severity, **case.labels},
        "exp_annotations": {"summary": case.summary, "action": rule.action},
    }
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": case.quiet, "alertname": case.alert, "exp_alerts": []},
            {"eval_time": case.fires, "alertname": case.alert, "exp_alerts": [expected]},
        ],
    }
