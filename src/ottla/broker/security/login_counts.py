"""How many clients said who they are, by listener: in a TLS handshake or by SASL, for the first time or anew.

As in Kafka one connection is one login, however many layers took part in it: where SASL follows TLS, SASL's success
counts, and the failure of either. Renewals of a session (KIP-368) are told apart.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from ottla.telemetry.declared import logins
from ottla.telemetry.metric import Row
from ottla.telemetry.recent import RecentTimes
from ottla.telemetry.registry import Telemetry


class LoginCounts:
    def __init__(self) -> None:
        self._accepted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._renewed: Counter[str] = Counter()
        self._not_renewed: Counter[str] = Counter()
        self._unable_to_renew: Counter[str] = Counter()
        self._latency: dict[str, RecentTimes] = {}

    def accepted(self, listener: str, *, can_renew: bool) -> None:
        """A first login. `can_renew`: the client knows how to log in again on the same connection."""
        self._accepted[listener] += 1
        self._unable_to_renew[listener] += not can_renew

    def renewed(self, listener: str, ms: float, now: float) -> None:
        """Somebody who was in said once more who it is; it took so long."""
        self._renewed[listener] += 1
        self._latency.setdefault(listener, RecentTimes()).note(ms, now)

    def refused(self, listener: str, *, was_in: bool = False) -> None:
        (self._not_renewed if was_in else self._refused)[listener] += 1

    def show(self, telemetry: Telemetry, now: Callable[[], float]) -> None:
        def read_totals() -> Iterator[Row]:
            counts = (self._accepted, self._refused, self._renewed, self._not_renewed, self._unable_to_renew)
            for listener in sorted(set().union(*counts)):
                yield (listener,), tuple(each[listener] for each in counts)

        def read_latency() -> Iterator[Row]:
            for listener, times in tuple(self._latency.items()):
                yield (listener,), (times.mean(now()), times.longest(now()))

        telemetry.observe_together(logins.TOTALS, read_totals)
        telemetry.observe_together((logins.RENEWAL_TIME_AVG, logins.RENEWAL_TIME_MAX), read_latency)
