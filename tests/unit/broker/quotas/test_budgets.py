"""Whose budget a client draws on, and what becomes of it when quotas change."""

from hypothesis import example, given
from hypothesis import strategies as st

from ottla.broker.quotas import budgets
from ottla.broker.quotas.budgets import Budgets, RateBudget
from ottla.broker.quotas.clients import ClientQuotas
from ottla.broker.quotas.precedence import DEFAULT
from ottla.cluster.image import Entity

ALICE = (("users", "alice"),)
APP = (("clients", "app"),)
ANY_CLIENT = (("clients", DEFAULT),)


def _rates(bounds: dict[Entity, float]) -> Budgets[RateBudget]:
    return Budgets(lambda: RateBudget(11, 1), bounds)


def test_clients_of_one_user_share_its_budget() -> None:
    rates = _rates({ALICE: 1000})
    one, other = rates.of(("alice", "a"), 0), rates.of(("alice", "b"), 0)
    assert one is not None
    assert one is other
    assert rates.of(("bob", "a"), 0) is None
    assert one.charge(9_000, 0) == 0
    assert one.charge(3_000, 0) == 2_000
    assert one.charge(1_000, 0) == 3_000
    assert one.waits.mean_ms(0) == 2_500
    assert one.waits.mean_ms(11_000) == 0


@given(st.integers(1_000, 10**6), st.floats(0.001, 3.0), st.integers(0, 40), st.booleans())
@example(1_000, 0.03125, 19, False)  # it uses so little more than its bound that what comes at once lasts for 18 s
def test_who_waits_as_told_has_its_bound_in_every_minute(
    bound: int, seconds_worth: float, takes_ms: int, asks_before: bool
) -> None:
    """After the first ten seconds' worth, which come at once. A producer has used it when it is told to wait; a
    consumer is told before it gets anything (`asks_before`)."""
    budget, now, size = RateBudget(11, 1), 0, max(1, int(bound * seconds_worth))
    budget.use_bound(bound)
    used: list[tuple[int, int]] = []
    told_first: int | None = None
    while now < 200_000:
        wait_ms = budget.charge(size, now)
        if wait_ms and told_first is None:
            told_first = now
        if wait_ms and asks_before:
            budget.give_back(size, now)
        else:
            used.append((now, size))
        now += wait_ms + takes_ms + 1
    could = min(bound, size * 1000 // (takes_ms + 1))
    for begins in (15_000, 71_234, 123_456):
        moved = sum(count for at, count in used if begins <= at < begins + 60_000)
        at_once = 1 if told_first is not None and told_first < begins else 10
        # One more or one less may fall into it; what a request takes is lost only while nothing is owed.
        assert 0.95 * could * 60 - size <= moved <= bound * (60 + at_once) + size


def test_a_debt_ends_however_large_it_was_and_never_turns_into_credit() -> None:
    budget = RateBudget(11, 1)
    budget.use_bound(10)
    assert budget.is_idle(0)
    assert budget.charge(1_000, 0) == 90_000
    assert budget.until_paid_ms(0) == 100_000
    assert not budget.is_idle(99_999)
    assert budget.is_idle(100_000)
    assert budget.charge(100, 10**9) == 0, "ten seconds' worth, however long it was silent"
    assert budget.charge(1, 10**9) == 100
    budget.give_back(5_000, 10**9)
    assert budget.charge(100, 10**9) == 0


def test_users_share_the_budget_of_a_client_id_but_ids_have_their_own_under_the_default() -> None:
    rates = _rates({ANY_CLIENT: 1000})
    assert rates.of(("alice", "app"), 0) is rates.of(("bob", "app"), 0)
    assert rates.of(("alice", "app"), 0) is not rates.of(("alice", "other"), 0)
    assert rates.of(("alice", ""), 0) is None


def test_another_bound_acts_at_once_on_what_was_used() -> None:
    rates = _rates({ALICE: 1000})
    budget = rates.of(("alice", "a"), 0)
    assert budget is not None
    assert budget.charge(10_000, 0) == 0
    rates.use_bounds({ALICE: 500})
    again = rates.of(("alice", "a"), 0)
    assert again is budget
    assert again.charge(0, 0) == 10_000
    rates.use_bounds({APP: 500})
    assert rates.of(("alice", "a"), 0) is None


def test_ids_that_clients_make_up_do_not_fill_the_memory() -> None:
    rates = _rates({ANY_CLIENT: 1000})
    for number in range(6 * budgets.KEPT_MAX):
        budget = rates.of(("alice", f"made-up-{number}"), 2 * number)
        assert budget is not None
        budget.charge(1, 2 * number)
    assert len(rates.items()) < 2 * budgets.KEPT_MAX, "those of the last 11 s, and few more"


def test_a_kind_is_measured_only_while_somebody_has_a_quota_of_it() -> None:
    assert not ClientQuotas().in_force
    quotas = ClientQuotas()
    quotas.use({ALICE: {"producer_byte_rate": "10.0"}, (("ips", "10.0.0.1"),): {"connection_creation_rate": "1.0"}})
    assert quotas.in_force
    assert quotas.produce is not None
    assert (quotas.fetch, quotas.requests, quotas.mutations) == (None, None, None)
    kept = quotas.produce
    quotas.use({ALICE: {"producer_byte_rate": "20.0", "consumer_byte_rate": "1.0"}})
    assert quotas.produce is kept, "what was used stays"
    assert quotas.fetch is not None
    quotas.use({(("ips", DEFAULT),): {"connection_creation_rate": "1.0"}})
    assert not quotas.in_force, "connections are none of a request's business"


def test_time_of_the_broker_is_counted_in_percent_of_one_thread_and_waits_are_short() -> None:
    quotas = ClientQuotas()
    quotas.use({ALICE: {"request_percentage": "2.5"}})
    assert quotas.requests is not None
    budget = quotas.requests.of(("alice", ""), 0)
    assert budget is not None
    assert budget.charge(250_000_000, 0) == 0, "2.5 % of ten seconds"
    assert budget.charge(2_500_000, 0) == 100
    assert budget.charge(10**10, 0) == 1_000, "never longer than one window"
    assert budget.rate(0) == 102, "percent, in whole ones"
