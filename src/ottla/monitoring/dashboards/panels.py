"""What dashboards show: titles with the expressions behind them."""

from typing import NamedTuple

from ottla.monitoring import metrics
from ottla.monitoring.dashboards.declared import is_declared
from ottla.telemetry import pipelines

_TOPICS = "kafka_server_brokertopicmetrics_"
_REPLICAS = "kafka_server_replicamanager_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_REQUESTS = "kafka_network_requestmetrics_"


class Query(NamedTuple):
    expression: str
    legend: str


class Panel(NamedTuple):
    title: str
    unit: str
    """Grafana's word for it."""
    queries: tuple[Query, ...]
    kind: str = "timeseries"


class Dashboard(NamedTuple):
    uid: str
    title: str
    panels: tuple[Panel, ...]


def _one(title: str, unit: str, expression: str, legend: str = "", kind: str = "timeseries") -> Panel:
    return Panel(title, unit, (Query(expression, legend),), kind)


_BROKERS = (
    _one("Controllers", "short", f"sum({_CONTROLLER}activecontrollercount)", kind="stat"),
    _one("Brokers", "short", f"sum({_CONTROLLER}activebrokercount)", kind="stat"),
    _one("Offline partitions", "short", f"sum({_CONTROLLER}offlinepartitionscount)", kind="stat"),
    _one("Under-replicated partitions", "short", f"sum({_REPLICAS}underreplicatedpartitions)", kind="stat"),
    _one("Bytes in", "Bps", f'sum by (instance) (rate({_TOPICS}bytesin_total{{topic!=""}}[5m]))', "{{instance}}"),
    _one("Bytes out", "Bps", f'sum by (instance) (rate({_TOPICS}bytesout_total{{topic!=""}}[5m]))', "{{instance}}"),
    _one(
        "Messages in",
        "wps",
        f'topk(10, sum by (topic) (rate({_TOPICS}messagesin_total{{topic!=""}}[5m])))',
        "{{topic}}",
    ),
    _one("Requests", "reqps", f"topk(10, sum by (request) (rate({_REQUESTS}requests_total[5m])))", "{{request}}"),
    _one(
        "Errors",
        "ops",
        f"topk(10, sum by (request, error) (rate({_REQUESTS}errors_total[5m])))",
        "{{request}} {{error}}",
    ),
    _one(
        "Time of requests, 99 %",
        "ms",
        f'topk(10, {_REQUESTS}totaltimems{{quantile="0.99"}})',
        "{{request}} {{instance}}",
    ),
    Panel(
        "In-sync replicas: changes",
        "ops",
        (
            Query(f"sum(rate({_REPLICAS}isrshrinks_total[5m]))", "shrinks"),
            Query(f"sum(rate({_REPLICAS}isrexpands_total[5m]))", "expands"),
        ),
    ),
    _one(
        "Under min.insync.replicas",
        "short",
        f"sum by (instance) ({_REPLICAS}underminisrpartitioncount)",
        "{{instance}}",
    ),
    _one("Leaders", "short", f"{_REPLICAS}leadercount", "{{instance}}"),
    _one("Log size", "bytes", "topk(10, sum by (topic) (kafka_log_log_size))", "{{topic}}"),
    _one(
        "Connections",
        "short",
        "sum by (instance) (kafka_server_socket_server_metrics_connection_count)",
        "{{instance}}",
    ),
    _one("Processor", "percentunit", "rate(process_cpu_seconds_total[5m])", "{{instance}}"),
    _one("Memory", "bytes", "process_resident_memory_bytes", "{{instance}}"),
    _one("File descriptors", "short", "process_open_fds", "{{instance}}"),
    _one("ZooKeeper latency", "ms", "zookeeper_avgrequestlatency", "{{server}}"),
)
_LAG = (
    _one(
        "Groups by state", "short", f"count by (consumer_group) ({metrics.GROUP_STATUS.name} > 1)", "{{consumer_group}}"
    ),
    _one("State (1 OK, 2 WARN, 3 ERR)", "short", metrics.GROUP_STATUS.name, "{{consumer_group}}"),
    _one("Unread records", "short", f"topk(20, {metrics.GROUP_LAG.name})", "{{consumer_group}}"),
    _one("Age of the oldest unread record", "s", f"topk(20, {metrics.GROUP_WAITING.name})", "{{consumer_group}}"),
    _one("Time until caught up", "s", f"topk(20, {metrics.GROUP_CAUGHT_UP.name})", "{{consumer_group}}"),
    _one(
        "Records read",
        "wps",
        f"sum by (consumer_group) (rate({metrics.PARTITION_OFFSET.name}[5m]))",
        "{{consumer_group}}",
    ),
    _one("Records written", "wps", f"topk(20, sum by (topic) (rate({metrics.TOPIC_END.name}[5m])))", "{{topic}}"),
    _one(
        "Free disk",
        "percentunit",
        f"{metrics.DIRECTORY_FREE.name} / {metrics.DIRECTORY_TOTAL.name}",
        "{{broker}} {{directory}}",
    ),
    _one("Partitions without leader", "short", metrics.LEADERLESS.name, "{{cluster}}"),
    _one("Under-replicated partitions", "short", metrics.UNDER_REPLICATED.name, "{{cluster}}"),
)
_END_TO_END = (
    _one("Write availability", "percentunit", metrics.PRODUCE_AVAILABILITY.name, "{{name}}", "stat"),
    _one("Read availability", "percentunit", metrics.CONSUME_AVAILABILITY.name, "{{name}}", "stat"),
    _one("Error budget left", "percentunit", metrics.BUDGET_LEFT.name, "{{name}} {{sli}}", "stat"),
    _one("Lost records", "short", metrics.LOST.name, "{{name}}", "stat"),
    _one("Burn rate", "short", metrics.BURN_RATE.name, "{{sli}} {{window}}"),
    _one(
        "By partition and leader", "percentunit", metrics.PARTITION_AVAILABILITY.name, "{{partition}} led by {{leader}}"
    ),
    _one("Until acknowledged", "ms", f'{metrics.PRODUCE_DELAY.name}{{quantile=~"50th|99th|max"}}', "{{quantile}}"),
    _one("Until read", "ms", f'{metrics.CONSUME_DELAY.name}{{quantile=~"50th|99th|max"}}', "{{quantile}}"),
    _one("Until committed", "ms", f'{metrics.COMMIT_DELAY.name}{{quantile=~"50th|99th|max"}}', "{{quantile}}"),
    Panel(
        "Topics",
        "ms",
        (Query(metrics.TOPIC_CREATION.name, "created"), Query(metrics.TOPIC_DELETION.name, "deleted")),
    ),
)

_OF_QUERY = "{{pipeline}} {{query}}"
_PIPELINES = (
    _one("Running", "short", f'count({pipelines.STATE.name}{{state="running"}}) or vector(0)', kind="stat"),
    _one("Failed", "short", f'count({pipelines.STATE.name}{{state="failed"}}) or vector(0)', kind="stat"),
    _one("Unread records in all", "short", f"sum({pipelines.LAG.name})", kind="stat"),
    _one("Dead letters in all", "short", f"sum({pipelines.DEAD_LETTERS.name})", kind="stat"),
    Panel(
        "Rows read and written",
        "wps",
        (
            Query(f"sum by (pipeline, query) (rate({pipelines.INPUT_ROWS.name}[5m]))", f"{_OF_QUERY} read"),
            Query(
                f"sum by (pipeline, query, sink) (rate({pipelines.SINK_ROWS.name}[5m]))", f"{_OF_QUERY} to {{{{sink}}}}"
            ),
        ),
    ),
    Panel(
        "Rows that come, and how fast they could be worked on",
        "wps",
        (
            Query(pipelines.INPUT_RATE.name, f"{_OF_QUERY} come"),
            Query(pipelines.RATE.name, f"{_OF_QUERY} could be"),
        ),
    ),
    _one("Unread records of each", "short", pipelines.LAG.name, _OF_QUERY),
    _one("Age of the last batch", "s", f"time() - {pipelines.BATCH_STARTED.name}", _OF_QUERY),
    _one(
        "Time of a batch",
        "s",
        f"rate({pipelines.BUSY.name}[5m]) / rate({pipelines.BATCHES.name}[5m])",
        _OF_QUERY,
    ),
    _one(
        "Where batches spend their time",
        "percentunit",
        f"sum by (pipeline, query, part) (rate({pipelines.BUSY_PARTS.name}[5m]))",
        f"{_OF_QUERY} {{{{part}}}}",
    ),
    _one("Last batch", "s", pipelines.BATCH_SECONDS.name, _OF_QUERY),
    _one("Its parts", "s", pipelines.BATCH_PARTS.name, f"{_OF_QUERY} {{{{part}}}}"),
    _one("Dead letters", "wps", f"rate({pipelines.DEAD_LETTERS.name}[5m])", _OF_QUERY),
    _one("Restarts", "short", f"increase({pipelines.RESTARTS.name}[15m])", _OF_QUERY),
    _one("Watermark, behind the clock", "s", f"time() - {pipelines.WATERMARK.name}", _OF_QUERY),
    _one("Newest event, behind the clock", "s", f"time() - {pipelines.EVENT_TIME.name}", _OF_QUERY),
    _one("Rows too late", "wps", f"rate({pipelines.LATE_ROWS.name}[5m])", _OF_QUERY),
    Panel(
        "Rows of state",
        "short",
        (
            Query(pipelines.STATE_ROWS.name, _OF_QUERY),
            Query(pipelines.STATE_OPERATOR_ROWS.name, f"{_OF_QUERY} {{{{operator}}}}"),
        ),
    ),
    _one("Memory of state", "bytes", pipelines.STATE_BYTES.name, _OF_QUERY),
    Panel(
        "Changes of state",
        "wps",
        (
            Query(f"rate({pipelines.STATE_UPDATES.name}[5m])", f"{_OF_QUERY} written"),
            Query(f"rate({pipelines.STATE_REMOVALS.name}[5m])", f"{_OF_QUERY} forgotten"),
        ),
    ),
    _one("Time for state in the last batch", "s", pipelines.STATE_PARTS.name, f"{_OF_QUERY} {{{{part}}}}"),
    Panel(
        "Heap of the driver",
        "bytes",
        (
            Query(pipelines.HEAP.name, "{{instance}} in use"),
            Query(pipelines.HEAP_MAX.name, "{{instance}} at most"),
        ),
    ),
    _one("Collecting garbage", "percentunit", f"rate({pipelines.COLLECTING.name}[5m])", "{{instance}}"),
    Panel(
        "Executors and tasks",
        "short",
        (
            Query(pipelines.EXECUTORS.name, "{{instance}} executors"),
            Query(pipelines.RUNNING_TASKS.name, "{{instance}} tasks"),
        ),
    ),
)

DASHBOARDS = (
    Dashboard("ottla-brokers", "Kafka brokers", _BROKERS),
    Dashboard("ottla-lag", "Kafka consumers' lag", _LAG),
    Dashboard("ottla-end-to-end", "Kafka end to end", _END_TO_END),
    Dashboard("ottla-pipelines", "Pipelines", _PIPELINES),
)


def written() -> list[Dashboard]:
    """Without what nobody measures."""
    return [
        each._replace(
            panels=tuple(
                panel for panel in each.panels if all(is_declared(query.expression) for query in panel.queries)
            )
        )
        for each in DASHBOARDS
    ]
