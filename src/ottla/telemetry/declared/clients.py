"""What clients push about themselves (KIP-714)."""

from ottla.telemetry.declaring import attribute, own, rate
from ottla.telemetry.metric import Kind

_TELEMETRY = "kafka.server:type=ClientMetrics"

INSTANCES = attribute(
    _TELEMETRY, "ClientMetricsInstanceCount", Kind.GAUGE, "clients", "Clients that asked what they are to push.",
    called="kafka_server_clientmetrics_instancecount",
)  # fmt: skip
SUBSCRIPTION_REQUESTS = attribute(
    _TELEMETRY, "unknown-subscription-request-count", Kind.COUNTER, "pushes",
    "Pushes under a subscription that is not the client's any more.",
    called="kafka_server_clientmetrics_unknown_subscription_request_count",
)  # fmt: skip
THROTTLED = attribute(
    _TELEMETRY, "throttle-count", Kind.COUNTER, "requests", "Requests of clients that came before their time.",
    called="kafka_server_clientmetrics_throttle_count",
)  # fmt: skip
PUSHES = attribute(
    _TELEMETRY, "plugin-export-count", Kind.COUNTER, "pushes", "Pushes whose metrics were taken.",
    called="kafka_server_clientmetrics_plugin_export_count",
)  # fmt: skip
FAILED_PUSHES = attribute(
    _TELEMETRY, "plugin-error-count", Kind.COUNTER, "pushes", "Pushes that could not be read.",
    called="kafka_server_clientmetrics_plugin_error_count",
)  # fmt: skip
EXPORT_TIME_AVG = attribute(
    _TELEMETRY, "plugin-export-time-avg", Kind.GAUGE, "milliseconds",
    "How long it took to read and keep a push, on average of the last minute.",
    called="kafka_server_clientmetrics_plugin_export_time_avg",
)  # fmt: skip
EXPORT_TIME_MAX = attribute(
    _TELEMETRY, "plugin-export-time-max", Kind.GAUGE, "milliseconds",
    "How long it took for the slowest push of the last minute.",
    called="kafka_server_clientmetrics_plugin_export_time_max",
)  # fmt: skip
SUBSCRIPTION_REQUEST_RATE = rate(SUBSCRIPTION_REQUESTS, "unknown-subscription-request-rate")
THROTTLE_RATE = rate(THROTTLED, "throttle-rate")
PUSH_RATE = rate(PUSHES, "plugin-export-rate")
FAILED_PUSH_RATE = rate(FAILED_PUSHES, "plugin-error-rate")
DROPPED = own(
    "ottla_client_metrics_dropped_total",
    Kind.COUNTER,
    "series",
    "Series of clients that are not told, because there are more than `metrics.client.series.max`.",
)
