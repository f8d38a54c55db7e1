"""Settings of where a broker can be watched."""

import dataclasses

from ottla.config.setting import SettingType, setting
from ottla.http.address import BadListener, parse_address


def _address_problem(text: str | None) -> str | None:
    if not text:
        return None
    try:
        parse_address(text, "metrics.listener")
    except BadListener as error:
        return str(error).removeprefix("metrics.listener: ")
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class MonitoringSettings:
    """Metrics over HTTP."""

    metrics_listener: str | None = setting(
        None,
        type=SettingType.STRING,
        check=_address_problem,
        doc="Where to serve metrics for Prometheus: HOST:PORT, or a port alone on 127.0.0.1; the path is /metrics. "
        "Who may read them metrics.listener.login says, and metrics.listener.tls how. Without it they are not served. "
        "Ottla's own setting.",
    )
    request_log_slow_ms: int = setting(
        -1,
        type=SettingType.INT,
        at_least=-1,
        doc="Requests that take at least this long are logged by `kafka.request.slow` at WARN, with the parts of their "
        "time; what a fetch or a join waits for does not count. -1 logs none. Ottla's own setting.",
    )
    metrics_client_series_max: int = setting(
        10_000,
        type=SettingType.INT,
        at_least=0,
        dynamic="cluster-wide",
        doc="How many series that clients push (KIP-714) `metrics.listener` tells; more are dropped and counted. "
        "Ottla's own setting.",
    )
    telemetry_max_bytes: int = setting(
        1_048_576,
        type=SettingType.INT,
        at_least=1,
        doc="How many bytes of metrics a client may push at once, as they come.",
    )
    metrics_offsets_max: int = setting(
        1_000,
        type=SettingType.INT,
        at_least=0,
        dynamic="cluster-wide",
        doc="With more partitions on this broker than this, or more committed offsets, `metrics.listener` does not "
        "tell those under kafka_exporter's names (kafka_topic_partition_*, kafka_consumergroup_*); 0 turns them off. "
        "Ottla's own setting.",
    )
