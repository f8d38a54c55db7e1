"""When somebody is to be woken: alert rules for Prometheus, for what operators of Kafka agree on, for what the monitor
sees and for pipelines.

Each names the metrics that it asks for; one whose metrics nobody declares is left out. Times are long enough for an
election and a restart, short enough to matter.
"""

from typing import NamedTuple

from ottla.monitoring import metrics
from ottla.monitoring.dashboards.declared import is_declared
from ottla.telemetry import pipelines

CRITICAL = "critical"
"""Records cannot be written or read, or may be lost: wake somebody."""
WARNING = "warning"
"""It will become worse unless somebody looks at it."""

_CONTROLLER = "kafka_controller_kafkacontroller_"
_REPLICAS = "kafka_server_replicamanager_"


class Rule(NamedTuple):
    alert: str
    expression: str
    lasting: str
    severity: str
    summary: str
    action: str
    """What to do first."""


_BROKERS = (
    Rule(
        "KafkaControllerCount",
        f"sum({_CONTROLLER}activecontrollercount) != 1",
        "1m",
        CRITICAL,
        "{{ $value }} brokers are the controller; one has to be",
        "see whether ZooKeeper answers (`ottla zookeeper-shell`), and the brokers' logs for `controller`",
    ),
    Rule(
        "KafkaOfflinePartitions",
        f"sum({_CONTROLLER}offlinepartitionscount) > 0",
        "1m",
        CRITICAL,
        "{{ $value }} partitions have no leader: nobody can write to or read from them",
        "`ottla topics --describe --unavailable-partitions` names them; start their brokers",
    ),
    Rule(
        "KafkaUnderMinIsr",
        f"sum by (instance) ({_REPLICAS}underminisrpartitioncount) > 0",
        "1m",
        CRITICAL,
        "{{ $value }} partitions of {{ $labels.instance }} have fewer in-sync replicas than min.insync.replicas",
        "producers with acks=all are refused: bring the missing brokers back",
    ),
    Rule(
        "KafkaUnderReplicated",
        f"sum by (instance) ({_REPLICAS}underreplicatedpartitions) > 0",
        "5m",
        WARNING,
        "{{ $value }} partitions of {{ $labels.instance }} have replicas that are not in sync",
        "`ottla topics --describe --under-replicated-partitions`: one broker in all of them is down or slow",
    ),
    Rule(
        "KafkaUncleanElections",
        "sum(increase(kafka_controller_controllerstats_uncleanleaderelections_total[10m])) > 0",
        "0m",
        CRITICAL,
        "a leader was elected that did not have all records",
        "records are lost; see which topics allow unclean.leader.election.enable",
    ),
    Rule(
        "KafkaOfflineLogDirectory",
        "sum by (instance) (kafka_log_logmanager_offlinelogdirectorycount) > 0",
        "1m",
        CRITICAL,
        "{{ $value }} log directories of {{ $labels.instance }} have failed",
        "look at the disk (`dmesg`); replace it, and restart the broker",
    ),
    Rule(
        "KafkaIsrFlapping",
        f"sum by (instance) (rate({_REPLICAS}isrshrinks_total[10m])) > 0.05",
        "15m",
        WARNING,
        "replicas of {{ $labels.instance }} leave the in-sync replicas again and again",
        "a follower keeps up only just: look at its disk, its network, its processor",
    ),
    Rule(
        "KafkaLeaderImbalance",
        f"sum({_CONTROLLER}preferredreplicaimbalancecount) > 0",
        "30m",
        WARNING,
        "{{ $value }} partitions are not led by their preferred replicas",
        "`ottla leader-election --election-type preferred --all-topic-partitions`",
    ),
    Rule(
        "KafkaScrapeDown",
        'up{job=~".*(kafka|ottla).*"} == 0',
        "1m",
        CRITICAL,
        "{{ $labels.instance }} does not answer Prometheus",
        "is it down, or its listener out of reach (a broker's is metrics.listener)?",
    ),
    Rule(
        "KafkaFileDescriptors",
        "process_open_fds / process_max_fds > 0.85",
        "5m",
        WARNING,
        "{{ $labels.instance }} has used {{ $value | humanizePercentage }} of its file descriptors",
        "raise LimitNOFILE of its service; `ottla doctor --host` says to what",
    ),
    Rule(
        "ZooKeeperSlow",
        "zookeeper_avgrequestlatency > 10",
        "5m",
        WARNING,
        "ZooKeeper {{ $labels.server }} takes {{ $value }} ms on average",
        "give its transaction log a disk of its own",
    ),
    Rule(
        "ZooKeeperDown",
        "zookeeper_up == 0",
        "1m",
        CRITICAL,
        "ZooKeeper {{ $labels.server }} does not answer",
        "start it: without a majority of them no leader can be elected",
    ),
)

_LAG = (
    Rule(
        "ConsumerGroupStalled",
        f"count by (cluster, consumer_group) ({metrics.PARTITION_STATUS.name} == 5) > 0",
        "1m",
        CRITICAL,
        "group {{ $labels.consumer_group }} lives and does not move in {{ $value }} partitions",
        "`ottla consumer-groups --describe --group GROUP`: which member has the partition, and what does its log say?",
    ),
    Rule(
        "ConsumerGroupStopped",
        f"count by (cluster, group) ({metrics.EXPORTED_PARTITION_STATUS.name} == 5) > 0",
        "2m",
        CRITICAL,
        "group {{ $labels.group }} does not commit any more, and records wait for it",
        "start its consumers; or forget it: `ottla consumer-groups --delete --group GROUP`",
    ),
    Rule(
        "ConsumerGroupRewound",
        f"count by (cluster, consumer_group) ({metrics.PARTITION_STATUS.name} == 6) > 0",
        "0m",
        WARNING,
        "group {{ $labels.consumer_group }} went back to records that it has had",
        "was it reset, or did its offsets expire (offsets.retention.minutes)?",
    ),
    Rule(
        "ConsumerGroupFallsBehind",
        f"{metrics.GROUP_STATUS.name} == 2",
        "15m",
        WARNING,
        "group {{ $labels.consumer_group }} reads more slowly than others write",
        "add consumers, up to one for each partition; or partitions",
    ),
    Rule(
        "ConsumerGroupLate",
        f"{metrics.GROUP_WAITING.name} > 600",
        "5m",
        WARNING,
        "the oldest unread record of group {{ $labels.consumer_group }} is {{ $value | humanizeDuration }} old",
        "compare with how long the topic keeps records (retention.ms): older ones are deleted unread",
    ),
    Rule(
        "LogDirectoryFillsUp",
        f"{metrics.DIRECTORY_FREE.name} / {metrics.DIRECTORY_TOTAL.name} < 0.15"
        f" and predict_linear({metrics.DIRECTORY_FREE.name}[1h], 86400) < 0",
        "15m",
        WARNING,
        "{{ $labels.directory }} of broker {{ $labels.broker }} will be full within a day",
        "`ottla log-dirs --describe` shows which topics are large; lower retention.bytes, or add a disk",
    ),
    Rule(
        "LogDirectoryFull",
        f"{metrics.DIRECTORY_FREE.name} / {metrics.DIRECTORY_TOTAL.name} < 0.05",
        "1m",
        CRITICAL,
        "{{ $labels.directory }} of broker {{ $labels.broker }} has {{ $value | humanizePercentage }} left",
        "producers will be refused: lower retention of the largest topic now",
    ),
    Rule(
        "MonitorSeesNothing",
        f"rate({metrics.LOOKS_FAILED.name}[5m]) / rate({metrics.LOOKS.name}[5m]) > 0.5",
        "5m",
        WARNING,
        "the monitor cannot ask all brokers of {{ $labels.cluster }}",
        "its log says which of them does not answer, and why",
    ),
)

_END_TO_END = (
    Rule(
        "RecordsLost",
        f"increase({metrics.LOST.name}[10m]) > 0",
        "0m",
        CRITICAL,
        'about {{ printf "%.0f" $value }} acknowledged records of {{ $labels.name }} are gone',
        "see the brokers' logs for unclean elections and truncation; check min.insync.replicas",
    ),
    # A budget that is used up in two days, or in five: seen over a long time to be sure, over a short one to end soon.
    Rule(
        "ErrorBudgetBurnsFast",
        f'{metrics.BURN_RATE.name}{{window="1h"}} > 14.4 and ignoring(window) '
        f'{metrics.BURN_RATE.name}{{window="5m"}} > 14.4',
        "0m",
        CRITICAL,
        "{{ $labels.sli }} of {{ $labels.name }} uses up its error budget {{ $value | humanize }} times too fast",
        "`ottla monitor` shows which partition and which leader it is",
    ),
    Rule(
        "ErrorBudgetBurns",
        f'{metrics.BURN_RATE.name}{{window="6h"}} > 6 and ignoring(window) '
        f'{metrics.BURN_RATE.name}{{window="30m"}} > 6',
        "0m",
        WARNING,
        "{{ $labels.sli }} of {{ $labels.name }} uses up its error budget {{ $value | humanize }} times too fast",
        "`ottla monitor` shows which partition and which leader it is",
    ),
    Rule(
        "PartitionUnavailable",
        f"{metrics.PARTITION_AVAILABILITY.name} < 0.9",
        "30s",
        CRITICAL,
        "broker {{ $labels.leader }} takes {{ $value | humanizePercentage }} of the records sent to it",
        "is it down, paused, or cut off from the others?",
    ),
)

_QUERY = "{{ $labels.query }} of pipeline {{ $labels.pipeline }}"
_PIPELINES = (
    Rule(
        "PipelineFailed",
        f'{pipelines.STATE.name}{{state="failed"}} == 1',
        "0m",
        CRITICAL,
        f"query {_QUERY} has failed and is not started again",
        "`ottla pipeline status FILE` says why; mend it, and run it again: it goes on where it was",
    ),
    Rule(
        "PipelineRestarts",
        f"increase({pipelines.RESTARTS.name}[15m]) > 2",
        "0m",
        WARNING,
        f'query {_QUERY} was started again about {{{{ printf "%.0f" $value }}}} times in a quarter of an hour',
        "`ottla pipeline status FILE` has the last error: is what it reads from or writes to there?",
    ),
    # A long batch is not a standstill: it shows in Spark's tasks.
    Rule(
        "PipelineStalled",
        f"{pipelines.LAG.name} > 0 and increase({pipelines.BATCHES.name}[10m]) == 0"
        f" and on (instance) max_over_time({pipelines.RUNNING_TASKS.name}[10m]) == 0",
        "5m",
        CRITICAL,
        f"query {_QUERY} finishes no batch, and {{{{ $value }}}} records wait for it",
        "`ottla pipeline status FILE`: does it run, and what is its last error?",
    ),
    Rule(
        "PipelineFallsBehind",
        f"min_over_time({pipelines.LAG.name}[30m]) > 0 and deriv({pipelines.LAG.name}[30m]) > 0",
        "15m",
        WARNING,
        f"query {_QUERY} works more slowly than others write",
        "see in which part its batches spend their time; more partitions and cores, larger `limits: max_records`",
    ),
    Rule(
        "PipelineDeadLetters",
        f"increase({pipelines.DEAD_LETTERS.name}[10m]) > 0",
        "0m",
        WARNING,
        f'query {_QUERY} could not use about {{{{ printf "%.0f" $value }}}} records in the last ten minutes',
        "read its dead letters, where each says why; then `ottla pipeline replay-dead-letters FILE`",
    ),
    Rule(
        "PipelineLateRows",
        f"rate({pipelines.LATE_ROWS.name}[15m]) / rate({pipelines.INPUT_ROWS.name}[15m]) > 0.01",
        "15m",
        WARNING,
        f"{{{{ $value | humanizePercentage }}}} of the rows of {_QUERY} come behind its watermark and are left out",
        "a longer `delay` of its watermark keeps state for longer and loses fewer; or who sends them late?",
    ),
    Rule(
        "PipelineWatermarkStands",
        f"rate({pipelines.INPUT_ROWS.name}[30m]) > 0 and changes({pipelines.WATERMARK.name}[30m]) == 0",
        "15m",
        WARNING,
        f"the watermark of {_QUERY} does not move though rows come: no window closes, and state only grows",
        "do events carry their times, and has one source of several gone silent? The slowest of them holds it back",
    ),
    # What is in use right after a collection is the least of some minutes.
    Rule(
        "PipelineMemory",
        f"min_over_time({pipelines.HEAP.name}[15m]) / {pipelines.HEAP_MAX.name} > 0.85",
        "5m",
        WARNING,
        "Spark's driver at {{ $labels.instance }} uses {{ $value | humanizePercentage }} of its heap",
        "give it more (`--conf spark.driver.memory=4g`); if it is state that grows, shorten watermarks and windows",
    ),
)

GROUPS: dict[str, tuple[Rule, ...]] = {
    "kafka-brokers": _BROKERS,
    "kafka-lag": _LAG,
    "kafka-end-to-end": _END_TO_END,
    "ottla-pipelines": _PIPELINES,
}


def written() -> dict[str, list[Rule]]:
    """The rules whose metrics somebody measures, by group."""
    return {name: [rule for rule in rules if is_declared(rule.expression)] for name, rules in GROUPS.items()}
