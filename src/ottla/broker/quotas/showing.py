"""What clients with a quota have used and how long they were held up, as metrics. Read when somebody asks."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from ottla.broker.quotas.budgets import Budget, Budgets, MutationBudget, RateBudget
from ottla.broker.quotas.clients import ClientQuotas
from ottla.telemetry import catalogue
from ottla.telemetry.declared import waiting
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

    def read_queue(kind: Callable[[], Budgets[B] | None]) -> Callable[[], Iterator[tuple[tuple[()], int]]]:
        def readings() -> Iterator[tuple[tuple[()], int]]:
            budgets, now = kind(), now_ms()
            if budgets is not None:
                yield (), sum(_waiting(budget, now) for _, budget in budgets.items())

        return readings

    for rate, wait, queue, kind in (
        (catalogue.QUOTA_PRODUCED, catalogue.QUOTA_PRODUCE_WAIT, waiting.PRODUCE, lambda: quotas.produce),
        (catalogue.QUOTA_FETCHED, catalogue.QUOTA_FETCH_WAIT, waiting.FETCH, lambda: quotas.fetch),
        (catalogue.QUOTA_TIME, catalogue.QUOTA_TIME_WAIT, waiting.REQUEST, lambda: quotas.requests),
    ):
        telemetry.observe(rate, read(kind, RateBudget.rate))
        telemetry.observe(wait, read(kind, _mean_wait))
        telemetry.observe(queue, read_queue(kind))
    telemetry.observe(waiting.MUTATION, read_queue(lambda: quotas.mutations))
    telemetry.observe(catalogue.QUOTA_TOKENS, read(lambda: quotas.mutations, _whole_tokens))
    telemetry.observe(catalogue.QUOTA_MUTATION_WAIT, read(lambda: quotas.mutations, _mean_wait))
    telemetry.observe(catalogue.QUOTA_MUTATIONS, read(lambda: quotas.mutations, MutationBudget.mutation_rate))
    telemetry.observe(
        catalogue.QUOTA_TIME_EXEMPT,
        lambda: (((), quotas.exempt.rate(now_ms())),) if quotas.requests is not None else (),
    )


def _mean_wait(budget: RateBudget | MutationBudget, now_ms: int) -> int:
    return budget.waits.mean_ms(now_ms)


def _waiting(budget: Budget, now_ms: int) -> int:
    assert isinstance(budget, RateBudget | MutationBudget)
    return budget.waits.running(now_ms)


def _whole_tokens(budget: MutationBudget, now_ms: int) -> int:
    return int(budget.tokens(now_ms))
