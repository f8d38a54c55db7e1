"""What the driver of pipelines tells Prometheus, each declared once: of every query, and of the Spark that runs them.

docs/metrics.md lists them behind the brokers'. They have no MBeans: those of Spark are its own.
"""

from ottla.telemetry.metric import Kind, Metric

PIPELINE_METRICS: dict[str, Metric] = {}

_QUERY = ("pipeline", "query")


def _declare(name: str, kind: Kind, unit: str, doc: str, labels: tuple[str, ...]) -> Metric:
    assert name not in PIPELINE_METRICS, f"{name} is declared twice"
    PIPELINE_METRICS[name] = Metric(name, "", "", kind, unit, doc, labels)
    return PIPELINE_METRICS[name]


def _gauge(name: str, unit: str, doc: str, *labels: str) -> Metric:
    return _declare(f"ottla_pipeline_{name}", Kind.GAUGE, unit, doc, (*_QUERY, *labels))


def _counter(name: str, unit: str, doc: str, *labels: str) -> Metric:
    return _declare(f"ottla_pipeline_{name}", Kind.COUNTER, unit, doc, (*_QUERY, *labels))


# Counted by the driver.

STATE = _gauge("state", "1", "In which state a query is: the label says it.", "state")
BATCHES = _counter("batches_total", "batches", "Batches that are complete.")
SINK_ROWS = _counter("sink_rows_total", "rows", "Rows written, by sink.", "sink")
DEAD_LETTERS = _counter("dead_letters_total", "records", "Records sent to the dead letters.")
RESTARTS = _counter("restarts_total", "restarts", "How often it was started again.")
LAG = _gauge("lag_records", "records", "Records of its topics that it has not read.")

# What Spark reports of each batch.

INPUT_ROWS = _counter("input_rows_total", "rows", "Rows read from sources.")
INPUT_RATE = _gauge(
    "input_rows_per_second", "rows/s", "How fast rows came: those of the last batch, by the time since the one before."
)
RATE = _gauge("rows_per_second", "rows/s", "How fast the last batch worked: its rows, by the time that it took.")
BATCH_STARTED = _gauge("batch_timestamp_seconds", "s since 1970", "When the last batch began.")
BATCH_SECONDS = _gauge("batch_seconds", "s", "How long the last batch took.")
BATCH_PARTS = _gauge("batch_part_seconds", "s", "How long each part of the last batch took, in Spark's words.", "part")
BUSY = _counter("busy_seconds_total", "s", "How long all batches took.")
BUSY_PARTS = _counter("busy_part_seconds_total", "s", "How long each part of all batches took.", "part")
STATE_ROWS = _gauge("state_rows", "rows", "Rows that stateful steps keep.")
STATE_BYTES = _gauge("state_bytes", "bytes", "Memory that they take.")
STATE_OPERATOR_ROWS = _gauge(
    "state_operator_rows", "rows", "The same rows, by what keeps them, in Spark's words.", "operator"
)
STATE_PARTS = _gauge(
    "state_part_seconds",
    "s",
    "What the last batch did to its state (`update`, `remove`, `commit`), in seconds of all tasks.",
    "part",
)
STATE_UPDATES = _counter("state_updates_total", "rows", "Rows of state that were written.")
STATE_REMOVALS = _counter("state_removals_total", "rows", "Rows of state that were forgotten.")
WATERMARK = _gauge(
    "watermark_timestamp_seconds", "s since 1970", "The watermark: older rows are late. Absent where there is none."
)
EVENT_TIME = _gauge(
    "event_time_max_timestamp_seconds", "s since 1970", "The newest time of an event that was seen in this run."
)
LATE_ROWS = _counter("late_rows_total", "rows", "Rows that came behind the watermark.")

# Of the driver's Spark as a whole.

HEAP = _declare("ottla_spark_heap_bytes", Kind.GAUGE, "bytes", "Heap of Spark's JVM in the driver that is in use.", ())
HEAP_MAX = _declare("ottla_spark_heap_max_bytes", Kind.GAUGE, "bytes", "What that heap may grow to.", ())
COLLECTING = _declare("ottla_spark_gc_seconds_total", Kind.COUNTER, "s", "How long that JVM has collected garbage.", ())
EXECUTORS = _declare("ottla_spark_executors", Kind.GAUGE, "executors", "Executors; the driver itself, if local.", ())
RUNNING_TASKS = _declare("ottla_spark_running_tasks", Kind.GAUGE, "tasks", "Tasks that run now.", ())
