"""Every API says what a client must be allowed to use it."""

import pytest

from ottla.broker.handlers.table import RIGHTS, SERVED, load_handlers, operations_on
from ottla.model.rights import GRANTABLE, Operation, Resource, Right
from ottla.protocol.apis import ApiKey

FOR_ANYBODY = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.DESCRIBE_CLUSTER}
FOR_ANYBODY |= {ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN}  # for whoever the token names
FOR_ANYBODY |= {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}  # who pushes tells only of itself
"""Kafka asks for no right either: some come before anybody is known, the last tells what Metadata tells."""
ONLY_WITH_ALL = {Right(Operation.DELETE, Resource.CLUSTER)}
"""Kafka asks whether a client has it, but nobody can be given it by name."""


@pytest.mark.parametrize("key", SERVED, ids=lambda key: key.name)
def test_every_served_api_declares_its_rights(key: ApiKey) -> None:
    needs = load_handlers()[key].rights
    assert needs == RIGHTS[key]
    assert bool(needs) == (key not in FOR_ANYBODY)
    for need in needs:
        assert need.any_of, "a need that no right satisfies"
        for right in need.any_of:
            assert right in ONLY_WITH_ALL or right.operation in GRANTABLE[right.resource], (
                f"nobody can be given {right}"
            )


def test_rights_have_the_names_of_kafkas_tools() -> None:
    words = [str(right) for need in RIGHTS[ApiKey.INIT_PRODUCER_ID] for right in need.any_of]
    assert words == [
        "Write on TransactionalId", "TwoPhaseCommit on TransactionalId", "IdempotentWrite on Cluster", "Write on Topic",
    ]  # fmt: skip


def test_what_can_be_done_with_the_served_apis_is_what_may_be_allowed() -> None:
    """So the bit fields of authorized operations, which have the latter, promise nothing that is not served."""
    for resource in (Resource.TOPIC, Resource.GROUP, Resource.CLUSTER):
        assert operations_on(resource) == GRANTABLE[resource]
