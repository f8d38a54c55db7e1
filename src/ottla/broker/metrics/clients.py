"""What clients push about themselves, as metrics."""

from collections.abc import Callable, Iterator

from ottla.telemetry.declared import clients
from ottla.telemetry.metric import Row
from ottla.telemetry.pushed import ClientMetrics
from ottla.telemetry.registry import Telemetry

_METRICS = (
    clients.INSTANCES,
    clients.SUBSCRIPTION_REQUESTS,
    clients.THROTTLED,
    clients.PUSHES,
    clients.FAILED_PUSHES,
    clients.DROPPED,
)


def show(telemetry: Telemetry, metrics: ClientMetrics, now: Callable[[], float]) -> None:
    def read() -> Iterator[Row]:
        yield (), (len(metrics), metrics.unknown, metrics.throttled, metrics.taken, metrics.failed, metrics.dropped)

    def read_times() -> Iterator[Row]:
        yield (), (metrics.times.mean(now()), metrics.times.longest(now()))

    telemetry.observe_together(_METRICS, read)
    telemetry.observe_together((clients.EXPORT_TIME_AVG, clients.EXPORT_TIME_MAX), read_times)
    telemetry.pushed = metrics.tables
