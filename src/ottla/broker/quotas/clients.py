"""The quotas of clients in force on this broker. Pure: who asks says when.

Each kind is None as long as nobody has a quota of it, and `in_force` False as long as nobody has any: that is all that
a request pays then. Each broker counts for itself, as in Kafka.
"""

from collections.abc import Callable, Mapping

from ottla.broker.quotas.budgets import B, Budgets, MutationBudget, RateBudget
from ottla.broker.quotas.precedence import IPS
from ottla.cluster.image import Entity, ImageChange
from ottla.config.client_quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotaSettings,
    read_quotas,
)

NS_PER_PERCENT = 10_000_000
"""One percent of a second, in nanoseconds: what `request_percentage` 1 allows in a second."""


class ClientQuotas:
    __slots__ = (
        "_controller_window_s", "_controller_windows", "_window_s", "_windows", "connection_rates", "exempt", "fetch",
        "in_force", "mutations", "produce", "requests",
    )  # fmt: skip

    def __init__(self, settings: ClientQuotaSettings | None = None) -> None:
        settings = settings or ClientQuotaSettings()
        self._windows = settings.quota_window_num
        self._window_s = settings.quota_window_size_seconds
        self._controller_windows = settings.controller_quota_window_num
        self._controller_window_s = settings.controller_quota_window_size_seconds
        self.in_force = False
        self.connection_rates: Mapping[str | None, int] = {}
        """Connections a second from an address; None is the one for addresses that have none of their own."""
        self.produce: Budgets[RateBudget] | None = None
        self.fetch: Budgets[RateBudget] | None = None
        self.requests: Budgets[RateBudget] | None = None
        self.mutations: Budgets[MutationBudget] | None = None
        self.exempt = self._time_budget()
        """The broker's time for requests that are nobody's: other brokers'. Noted while `requests` is there."""

    @property
    def fetch_window_s(self) -> int:
        """A fetch of more than this time's worth would never be within the bound, even by who used nothing before."""
        return (self._windows - 1) * self._window_s

    def follow(self, change: ImageChange) -> None:
        if change.entities:
            self.use(change.new.entity_configs)

    def use(self, configs: Mapping[Entity, Mapping[str, str]]) -> None:
        """These are the settings of users, clients and addresses now, quotas among them."""
        quotas = {entity: read_quotas(values) for entity, values in configs.items()}
        clients = {entity: values for entity, values in quotas.items() if entity[0][0] != IPS}
        self.connection_rates = {
            entity[0][1]: int(values[CONNECTION_CREATION_RATE])
            for entity, values in quotas.items()
            if entity[0][0] == IPS and CONNECTION_CREATION_RATE in values
        }
        self.produce = _changed(self.produce, clients, PRODUCER_BYTE_RATE, self._byte_budget)
        self.fetch = _changed(self.fetch, clients, CONSUMER_BYTE_RATE, self._byte_budget)
        self.requests = _changed(self.requests, clients, REQUEST_PERCENTAGE, self._time_budget)
        self.mutations = _changed(self.mutations, clients, CONTROLLER_MUTATION_RATE, self._mutation_budget)
        self.in_force = any(kind is not None for kind in (self.produce, self.fetch, self.requests, self.mutations))

    def _byte_budget(self) -> RateBudget:
        return RateBudget(self._windows, self._window_s)

    def _time_budget(self) -> RateBudget:
        return RateBudget(self._windows, self._window_s, scale=NS_PER_PERCENT, wait_ms_max=self._window_s * 1000)

    def _mutation_budget(self) -> MutationBudget:
        return MutationBudget(self._controller_windows, self._controller_window_s)


def _changed(
    before: Budgets[B] | None, quotas: Mapping[Entity, Mapping[str, float]], key: str, make: Callable[[], B]
) -> Budgets[B] | None:
    bounds = {entity: values[key] for entity, values in quotas.items() if key in values}
    if not bounds:
        return None
    if before is None:
        return Budgets(make, bounds)
    before.use_bounds(bounds)
    return before
