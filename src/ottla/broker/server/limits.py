"""How many connections and how many bytes of requests the broker holds at a time. Pure: time comes in."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ottla.broker.quotas.budgets import Waits
from ottla.broker.quotas.sampled import SampledSum
from ottla.config.broker import BrokerSettings
from ottla.config.network import per_ip_overrides
from ottla.config.per_listener import own_value
from ottla.config.setting import INT_MAX

NO_RATES: Mapping[str | None, int] = {}
ADDRESSES_KEPT_MAX = 10_000
"""Above this many, those are forgotten that have opened nothing for a while."""


class ConnectionLimits:
    """Counts connections by listener and address, and decides whether and when one more is let in.

    In this order, as in Kafka: the rates of broker and listener, a place on both, the rate of the address, and how many
    the address has. The listener that brokers use among themselves looks at the broker's rate and places only if there
    is no other (KIP-402, KIP-612): clients cannot shut other brokers out.
    """

    def __init__(
        self,
        settings: Callable[[], BrokerSettings],
        rates: Callable[[], Mapping[str | None, int]] = lambda: NO_RATES,
    ) -> None:
        self._settings = settings
        self._rates = rates
        self._protected: str | None = None
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._total = 0
        self._came: dict[str | None, SampledSum] = {}
        """Connections that came, by listener; None: to the broker, through those that are not protected."""
        self._came_from: dict[str, SampledSum] = {}
        self.waits: dict[str, Waits] = {}
        """By listener: how long connections were held up by the rates of broker and listener."""
        self.address_waits: dict[str, Waits] = {}
        """By listener: how long they were by the rate of their address."""

    @property
    def total(self) -> int:
        return self._total

    def use_listeners(self, names: Sequence[str], between_brokers: str) -> None:
        self._protected = between_brokers if between_brokers in names and len(names) > 1 else None

    def is_protected(self, listener: str) -> bool:
        return listener == self._protected

    def arrived(self, listener: str, now_ms: int) -> int:
        """Note that one came. Returns for how many milliseconds it, and all behind it, have to wait."""
        wait_ms = 0
        if not self.is_protected(listener):
            wait_ms = self._note(None, self._settings().max_connection_creation_rate, now_ms)
        wait_ms = max(wait_ms, self._note(listener, self._rate_of(listener), now_ms))
        if wait_ms:
            self._note_wait(self.waits, listener, wait_ms, now_ms)
        return wait_ms

    def has_room(self, listener: str) -> bool:
        settings = self._settings()
        own = own_value(settings, listener, "max.connections")
        most = settings.max_connections if own is None else own
        assert isinstance(most, int)
        if self._by_listener[listener] >= most:
            return False
        return self.is_protected(listener) or self._total < settings.max_connections

    def address_waits_ms(self, listener: str, host: str, now_ms: int) -> int:
        """Note that one came from there. Returns 0, or for how many milliseconds it is kept waiting before it is closed
        because they come too often; then it counts nowhere."""
        rates = self._rates()
        rate = rates.get(host, rates.get(None)) if rates else None
        if rate is None:
            return 0
        came = self._came_from.get(host)
        if came is None:
            self._forget_idle(now_ms)
            came = self._came_from[host] = self._new_sum()
        came.record(1, now_ms)
        wait_ms = came.wait_ms(rate, now_ms)
        if wait_ms:
            of_broker = None if self.is_protected(listener) else self._came.get(None)
            for noted in (came, self._came.get(listener), of_broker):
                if noted is not None:
                    noted.record(-1, now_ms)
            wait_ms = min(wait_ms, self._longest_wait_ms())
            self._note_wait(self.address_waits, listener, wait_ms, now_ms)
        return wait_ms

    def accept_rate(self, listener: str | None, now_ms: int) -> float:
        """Connections a second that came through a listener; None: to the broker, as its own rate counts them."""
        came = self._came.get(listener)
        return 0.0 if came is None else 1000 * came.total(now_ms) / came.span_ms(now_ms)

    def address_rates(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Of addresses that have a quota for that."""
        for host, came in tuple(self._came_from.items()):
            yield host, 1000 * came.total(now_ms) / came.span_ms(now_ms)

    def most_from(self, host: str) -> int | None:
        """How many connections an address may have, if it has them; None if it may have one more."""
        settings = self._settings()
        most = per_ip_overrides(settings.max_connections_per_ip_overrides).get(host, settings.max_connections_per_ip)
        return most if self._by_host[host] >= most else None

    def excess(self) -> int:
        """How many connections of listeners that are not protected have to go."""
        others = self._total - (self._by_listener[self._protected] if self._protected is not None else 0)
        return min(max(0, self._total - self._settings().max_connections), others)

    def opened(self, listener: str, host: str) -> None:
        self._by_host[host] += 1
        self._by_listener[listener] += 1
        self._total += 1

    def closed(self, listener: str, host: str) -> None:
        self._total -= 1
        self._by_listener[listener] -= 1
        self._by_host[host] -= 1
        if not self._by_host[host]:
            del self._by_host[host]

    def _rate_of(self, listener: str) -> int:
        settings = self._settings()
        own = own_value(settings, listener, "max.connection.creation.rate")
        rate = settings.max_connection_creation_rate if own is None else own
        assert isinstance(rate, int)
        return rate

    def _note(self, who: str | None, rate: int, now_ms: int) -> int:
        came = self._came.get(who)
        if came is None:
            came = self._came[who] = self._new_sum()
        came.record(1, now_ms)
        if rate >= INT_MAX:
            return 0
        return min(came.wait_ms(rate, now_ms), self._longest_wait_ms())

    def _note_wait(self, waits: dict[str, Waits], listener: str, wait_ms: int, now_ms: int) -> None:
        if listener not in waits:
            settings = self._settings()
            waits[listener] = Waits(settings.quota_window_num, settings.quota_window_size_seconds)
        waits[listener].note(wait_ms, now_ms)

    def _new_sum(self) -> SampledSum:
        settings = self._settings()
        return SampledSum(settings.quota_window_num, settings.quota_window_size_seconds * 1000)

    def _longest_wait_ms(self) -> int:
        return self._settings().quota_window_size_seconds * 1000

    def _forget_idle(self, now_ms: int) -> None:
        if len(self._came_from) >= ADDRESSES_KEPT_MAX:
            self._came_from = {host: came for host, came in self._came_from.items() if not came.is_idle(now_ms)}


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
        if not self.held:
            return False  # as before most requests: the setting need not be looked up
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
