"""What the tools say of a refusal whose reason is in the broker's settings."""

import pytest

from ottla.cli.data.refusals import session_bounds, why_invalid


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_wants_keys(policy: str) -> None:
    words = why_invalid({"cleanup.policy": policy}, has_key=False)
    assert f"cleanup.policy={policy}, so every record needs a key" in words
    assert "parse.key=true" in words


def test_a_policy_that_was_not_told_and_one_that_is_not_the_reason() -> None:
    assert "cleanup.policy=compact" in why_invalid({}, has_key=False)
    assert "key" not in why_invalid({"cleanup.policy": "delete"}, has_key=False)
    assert why_invalid({"cleanup.policy": "delete"}, has_key=True) == ""


def test_a_topic_that_checks_schemas_wants_their_ids() -> None:
    values = {"cleanup.policy": "delete", "confluent.value.schema.validation": "true"}
    words = why_invalid(values, has_key=True)
    assert "confluent.value.schema.validation=true, so its values need the id of a schema" in words
    both = why_invalid({**values, "confluent.key.schema.validation": "true"}, has_key=False)
    assert "so its values and keys need" in both


def test_bounds_of_session_timeouts_with_and_without_their_values() -> None:
    told = {"group.min.session.timeout.ms": "6000", "group.max.session.timeout.ms": "1800000"}
    assert session_bounds(1, told) == (
        "session.timeout.ms=1 must lie between the broker's group.min.session.timeout.ms=6000 "
        "and group.max.session.timeout.ms=1800000"
    )
    untold = session_bounds(None, {})
    assert "the session timeout must lie between" in untold
    assert "group.min.session.timeout.ms and group.max.session.timeout.ms" in untold
