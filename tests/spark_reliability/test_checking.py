"""The checker of the soaks finds what it is there for."""

import pytest
from tests.spark_reliability.checking import Counted, Payment, Verdict, check_counted, check_payments
from tests.spark_reliability.world import Payments, account_of, amount_of, is_repeated

PAYMENTS = Payments(4_000, 4)
GOOD = PAYMENTS.good
WITHOUT_ACCOUNT = 1_003
"""In slice 1: account 3 is closed in version 1, and open again in version 2."""


def payments() -> dict[int, Payment]:
    versions = {number: min(PAYMENTS.versions_met(number), key=str) for number in GOOD}
    return {n: Payment(n, amount_of(n), amount_of(n) * 2, versions[n]) for n in GOOD}


def counted() -> dict[int, Counted]:
    places: dict[str, tuple[int, int]] = {}
    found = {}
    for number in sorted(GOOD):
        account, amount = account_of(number), amount_of(number)
        place, total = places.get(account, (0, 0))
        places[account] = place + 1, total + amount
        found[number] = Counted(number, account, amount, *places[account])
    return found


def judged(rows: list[Payment]) -> str:
    verdict = Verdict()
    check_payments(verdict, "here", rows, GOOD, PAYMENTS)
    return verdict.wrong.get("here", "")


def judged_counted(rows: list[Counted]) -> str:
    verdict = Verdict()
    check_counted(verdict, "here", rows, GOOD)
    return verdict.wrong.get("here", "")


def test_what_is_right_passes() -> None:
    assert judged([*payments().values()]) == ""
    assert judged_counted([*counted().values()]) == ""


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (None, "1 lost (such as [42])"),
        (Payment(42, 42, 85, 0), "1 with other amounts"),
        (Payment(42, 42, 84, 2), "1 met an account as it was not then"),
        (Payment(42, 42, 84, None), "1 met an account as it was not then"),
    ],
)
def test_what_is_wrong_with_a_payment_is_said(wrong: Payment | None, said: str) -> None:
    rows = payments()
    del rows[42]
    assert said in judged([*rows.values(), *([wrong] if wrong else [])])


def test_a_payment_twice_and_one_that_is_bad_are_found() -> None:
    rows = payments()
    assert "1 doubled (such as [42])" in judged([*rows.values(), rows[42]])
    assert "1 that should not be there (such as [13])" in judged([*rows.values(), Payment(13, 13, 26, 0)])


def test_versions_are_those_of_a_payments_time() -> None:
    assert PAYMENTS.versions_met(42) == {0, 1}
    assert PAYMENTS.versions_met(WITHOUT_ACCOUNT) == {None, 2}
    assert PAYMENTS.versions_met(3_999) == {3}
    assert is_repeated(57)
    assert PAYMENTS.versions_met(57) == {0, 1, 2}


@pytest.mark.parametrize(("place", "total"), [(7, None), (None, 5)])
def test_state_that_was_lost_or_applied_twice_is_found(place: int | None, total: int | None) -> None:
    rows = counted()
    rows[42] = rows[42]._replace(place=place or rows[42].place, total=total or rows[42].total)
    assert "with a state that is not theirs" in judged_counted([*rows.values()])


def test_every_payment_is_sent_and_some_twice() -> None:
    sent = [number for part in range(PAYMENTS.slices) for number, _ in PAYMENTS.sent_in(part)]
    assert set(sent) == GOOD | PAYMENTS.bad
    assert len(sent) == PAYMENTS.sent > PAYMENTS.records
