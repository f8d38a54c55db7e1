"""What clients push about themselves, as metrics."""

from collections.abc import Callable, Iterable, Iterator

from ottla.telemetry.declared import clients
from ottla.telemetry.metric import Row, Table
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
        # Who looks finds nobody who has gone: when the last one goes, no other comes that would end them.
        metrics.expire(int(now() * 1000))
        yield (), (len(metrics), metrics.unknown, metrics.throttled, metrics.taken, metrics.failed, metrics.dropped)

    def read_times() -> Iterator[Row]:
        yield (), (metrics.times.mean(now()), metrics.times.longest(now()))

    telemetry.observe_together(_METRICS, read)
    telemetry.observe_together((clients.EXPORT_TIME_AVG, clients.EXPORT_TIME_MAX), read_times)

    def pushed() -> Iterable[Table]:
        metrics.expire(int(now() * 1000))
        return metrics.tables()

    telemetry.pushed = pushed
