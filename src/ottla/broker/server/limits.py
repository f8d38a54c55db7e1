"""How many connections and how many bytes of requests the broker holds at a time. Pure: time comes in."""

from collections import Counter
from collections.abc import Callable

from ottla.config.broker import BrokerSettings, per_ip_overrides

NO_CONNECTIONS_PAUSE_SECONDS = 1.0  # the rate is zero, and may be raised while the broker runs


class ConnectionLimits:
    """Counts connections by address and decides whether one more is let in."""

    def __init__(self, settings: Callable[[], BrokerSettings]) -> None:
        self._settings = settings
        self._by_host: Counter[str] = Counter()
        self._total = 0
        self._allowance = 0.0
        self._allowance_at: float | None = None

    @property
    def total(self) -> int:
        return self._total

    def refusal(self, host: str) -> str | None:
        """Why this connection must be closed again, or None if it may stay."""
        settings = self._settings()
        if self._total >= settings.max_connections:
            return f"max.connections is {settings.max_connections}"
        most = per_ip_overrides(settings.max_connections_per_ip_overrides).get(host, settings.max_connections_per_ip)
        if self._by_host[host] >= most:
            return f"max.connections.per.ip is {most} for {host}"
        return None

    def wait_before_next(self, now: float) -> float:
        """Seconds to wait before accepting, so that connections come no faster than the configured rate.

        A bucket of one second's worth lets short bursts through, as Kafka's averaged rate does.
        """
        rate = self._settings().max_connection_creation_rate
        if rate == 0:
            return NO_CONNECTIONS_PAUSE_SECONDS
        if self._allowance_at is None:
            self._allowance, self._allowance_at = float(rate), now
        self._allowance = min(float(rate), self._allowance + (now - self._allowance_at) * rate)
        self._allowance_at = now
        if self._allowance >= 1.0:
            self._allowance -= 1.0
            return 0.0
        return (1.0 - self._allowance) / rate

    def opened(self, host: str) -> None:
        self._by_host[host] += 1
        self._total += 1

    def closed(self, host: str) -> None:
        self._total -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]


class RequestMemory:
    """The bytes of requests received and not yet answered. Over the bound, connections stop reading.

    A connection that holds nothing may always read on, up to one request: else two half-read requests that
    together fill the bound would wait for each other for ever.
    """

    def __init__(self, bytes_max: Callable[[], int]) -> None:
        self._bytes_max = bytes_max
        self.held = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def exhausted(self) -> bool:
        most = self._bytes_max()
        return most > 0 and self.held >= most

    def take(self, size: int) -> None:
        self.held += size

    def give_back(self, size: int) -> None:
        self.held -= size
        if self._waiting and not self.exhausted:
            waiting, self._waiting = self._waiting, []
            for resume in waiting:
                resume()

    def when_available(self, resume: Callable[[], None]) -> None:
        self._waiting.append(resume)
