"""What clients with a quota have used and how long they were held up, as metrics. Read when somebody asks."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from ottla.broker.quotas.budgets import Budget, Budgets, MutationBudget, RateBudget
from ottla.broker.quotas.clients import ClientQuotas
from ottla.telemetry import catalogue
from ottla.telemetry.registry import Telemetry

B = TypeVar("B", bound=Budget)
Readings = Iterator[tuple[tuple[str, str], float]]


def show(quotas: ClientQuotas, telemetry: Telemetry, now_ms: Callable[[], int]) -> None:
    def read(kind: Callable[[], Budgets[B] | None], figure: Callable[[B, int], float]) -> Callable[[], Readings]:
        def readings() -> Readings:
            budgets, now = kind(), now_ms()
            for sharers, budget in budgets.items() if budgets is not None else ():
                yield (sharers.user, sharers.client_id), figure(budget, now)

        return readings

    for rate, wait, kind in (
        (catalogue.QUOTA_PRODUCED, catalogue.QUOTA_PRODUCE_WAIT, lambda: quotas.produce),
        (catalogue.QUOTA_FETCHED, catalogue.QUOTA_FETCH_WAIT, lambda: quotas.fetch),
        (catalogue.QUOTA_TIME, catalogue.QUOTA_TIME_WAIT, lambda: quotas.requests),
    ):
        telemetry.observe(rate, read(kind, RateBudget.rate))
        telemetry.observe(wait, read(kind, _mean_wait))
    telemetry.observe(catalogue.QUOTA_TOKENS, read(lambda: quotas.mutations, _whole_tokens))
    telemetry.observe(catalogue.QUOTA_MUTATION_WAIT, read(lambda: quotas.mutations, _mean_wait))
    telemetry.observe(catalogue.QUOTA_MUTATIONS, read(lambda: quotas.mutations, MutationBudget.mutation_rate))
    telemetry.observe(
        catalogue.QUOTA_TIME_EXEMPT,
        lambda: (((), quotas.exempt.rate(now_ms())),) if quotas.requests is not None else (),
    )


def _mean_wait(budget: RateBudget | MutationBudget, now_ms: int) -> int:
    return budget.waits.mean_ms(now_ms)


def _whole_tokens(budget: MutationBudget, now_ms: int) -> int:
    return int(budget.tokens(now_ms))
