"""Which quota counts for a client."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.quotas.precedence import DEFAULT, Sharers, quota_for
from ottla.cluster.image import Entity

ORDER: list[tuple[Entity, Sharers]] = [
    ((("users", "u"), ("clients", "c")), Sharers("u", "c")),
    ((("users", "u"), ("clients", DEFAULT)), Sharers("u", "c")),
    ((("users", "u"),), Sharers("u", "")),
    ((("users", DEFAULT), ("clients", "c")), Sharers("u", "c")),
    ((("users", DEFAULT), ("clients", DEFAULT)), Sharers("u", "c")),
    ((("users", DEFAULT),), Sharers("u", "")),
    ((("clients", "c"),), Sharers("", "c")),
    ((("clients", DEFAULT),), Sharers("", "c")),
]
OF_OTHERS: list[Entity] = [
    (("users", "x"),), (("clients", "x"),), (("users", "x"), ("clients", "c")), (("users", "u"), ("clients", "x")),
    (("ips", "u"),),
]  # fmt: skip


@given(st.sets(st.sampled_from([*(entity for entity, _ in ORDER), *OF_OTHERS])))
def test_the_most_specific_quota_counts(entities: set[Entity]) -> None:
    quotas = {entity: repr(entity) for entity in entities}
    expected = next(((sharers, repr(entity)) for entity, sharers in ORDER if entity in entities), None)
    assert quota_for(quotas, "u", "c") == expected


def test_a_client_without_an_id_has_only_the_quotas_of_its_user() -> None:
    every = {entity: repr(entity) for entity, _ in ORDER}
    assert quota_for(every, "u", "") == (Sharers("u", ""), repr((("users", "u"),)))
    assert quota_for({(("clients", DEFAULT),): 1, (("users", "u"), ("clients", DEFAULT)): 2}, "u", "") is None
    assert quota_for({(("users", DEFAULT),): 3}, "u", "") == (Sharers("u", ""), 3)
