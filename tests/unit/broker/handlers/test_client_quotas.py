"""Quotas are set, described, and in force at once."""

import asyncio
from collections.abc import Iterable

import pytest
from tests.unit.broker.handlers.conftest import Harness

from ottla.broker.controller.loop import AlterEntity
from ottla.cluster.image import user_entity
from ottla.cluster.store import ABSENT
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    OpData,
    RequestEntityData,
    RequestEntryData,
)
from ottla.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

Names = dict[str, str | None]
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def entry(names: Iterable[tuple[str, str | None]], **quotas: float | None) -> RequestEntryData:
    return RequestEntryData(
        entity=[RequestEntityData(entity_type=kind, entity_name=name) for kind, name in names],
        ops=[OpData(key=key, value=value or 0.0, remove=value is None) for key, value in quotas.items()],
    )


def alter(harness: Harness, *entries: RequestEntryData, validate_only: bool = False) -> list[tuple[int, str | None]]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    response = harness.call(request, AlterClientQuotasResponse, 1)
    asked = [[(part.entity_type, part.entity_name) for part in each.entity] for each in entries]
    assert [[(part.entity_type, part.entity_name) for part in each.entity] for each in response.entries] == asked
    return [(each.error_code, each.error_message) for each in response.entries]


def describe(
    harness: Harness, *components: tuple[str, int, str | None], strict: bool = False
) -> list[tuple[Names, dict[str, float]]]:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components],
        strict=strict,
    )
    response = harness.call(request, DescribeClientQuotasResponse, 1)
    assert (response.error_code, response.error_message) == (0, None)
    assert response.entries is not None
    return sorted(
        (
            (
                {part.entity_type: part.entity_name for part in each.entity},
                {value.key: value.value for value in each.values},
            )
            for each in response.entries
        ),
        key=str,
    )


ALICE: Names = {"user": "alice"}
ALICE_APP: Names = {"user": "alice", "client-id": "app"}
ALICE_ANY: Names = {"user": "alice", "client-id": None}
ANY_USER: Names = {"user": None}
APP: Names = {"client-id": "app"}
ADDRESS: Names = {"ip": "192.0.2.1"}
EVERYBODY = [ALICE, ALICE_APP, ALICE_ANY, ANY_USER, APP, ADDRESS]


@pytest.fixture
def full(harness: Harness) -> Harness:
    entries = [
        entry(names.items(), connection_creation_rate=7.0)
        if "ip" in names
        else entry(names.items(), producer_byte_rate=1000.0 + number)
        for number, names in enumerate(EVERYBODY)
    ]
    assert alter(harness, *entries) == [(0, None)] * len(EVERYBODY)
    return harness


def test_what_is_set_is_described_until_it_is_removed(harness: Harness) -> None:
    assert describe(harness) == []
    assert alter(harness, entry([("user", "alice")], producer_byte_rate=1024.0, request_percentage=12.5)) == [(0, None)]
    assert describe(harness) == [(ALICE, {"producer_byte_rate": 1024.0, "request_percentage": 12.5})]
    assert dict(harness.store.image.entity_configs[user_entity("alice")]) == {
        "producer_byte_rate": "1024",
        "request_percentage": "12.5",
    }, "whole numbers as such"
    assert alter(harness, entry([("user", "alice")], request_percentage=None, consumer_byte_rate=None)) == [(0, None)]
    assert describe(harness) == [(ALICE, {"producer_byte_rate": 1024.0})]
    assert alter(harness, entry([("user", "alice")], producer_byte_rate=None)) == [(0, None)]
    assert describe(harness) == []


def test_documents_lie_where_kafka_kept_them(full: Harness) -> None:
    alter(
        full, entry([("user", "CN=a b,O=*")], producer_byte_rate=1.0), entry([("ip", None)], connection_creation_rate=1)
    )
    for path in (
        "/config/users/alice", "/config/users/alice/clients/app", "/config/users/alice/clients/<default>",
        "/config/users/<default>", "/config/clients/app", "/config/ips/192.0.2.1", "/config/ips/<default>",
        "/config/users/CN%3Da%20b%2CO%3D%2A",
    ):  # fmt: skip
        assert full.store.version(path) != ABSENT, path


def test_nothing_is_set_when_only_asked_whether_it_could_be(harness: Harness) -> None:
    wanted = entry([("user", "alice")], producer_byte_rate=1.0), entry([("user", "alice")], producer_byte_rate=0.0)
    assert alter(harness, wanted[0], validate_only=True) == [(0, None)]
    assert alter(harness, wanted[1], validate_only=True)[0][0] == ErrorCode.INVALID_REQUEST
    assert describe(harness) == []


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (entry([], producer_byte_rate=1.0), "Invalid empty client quota entity"),
        (entry([("group", "g")], producer_byte_rate=1.0), "Unhandled client quota entity type: group"),
        (entry([("user", "")], producer_byte_rate=1.0), "Empty user not supported"),
        (entry([("user", "a"), ("user", "b")], producer_byte_rate=1.0), "duplicate entity entry user"),
        (entry([("ip", "192.0.2.1"), ("user", "a")], connection_creation_rate=1.0), "should not be combined"),
        (entry([("ip", "nowhere.invalid")], connection_creation_rate=1.0), "is not a valid IP"),
        (entry([("user", "a")], connection_creation_rate=1.0), "Invalid configuration key connection_creation_rate"),
        (entry([("ip", "::1")], producer_byte_rate=1.0), "Invalid configuration key producer_byte_rate"),
        (entry([("user", "a")], producer_byte_rate=-1.0), "Quota producer_byte_rate must be greater than 0"),
        (entry([("user", "a")], producer_byte_rate=float("nan")), "must be greater than 0"),
        (entry([("user", "a")], request_percentage=float("inf")), "must be a number"),
        (entry([("user", "a")], producer_byte_rate=1.5), "producer_byte_rate cannot be a fractional value."),
        (entry([("user", "a")], producer_byte_rate=1e30), "is too large for a LONG"),
        (entry([("ip", "::1")], connection_creation_rate=3e9), "is too large for an INT"),
    ],
)
def test_what_cannot_be_is_refused_and_the_others_are_done(
    harness: Harness, refused: RequestEntryData, words: str
) -> None:
    (code, message), other = alter(harness, refused, entry([("user", "other")], producer_byte_rate=5.0))
    assert code == ErrorCode.INVALID_REQUEST
    assert words in (message or "")
    assert other == (0, None)
    assert describe(harness) == [({"user": "other"}, {"producer_byte_rate": 5.0})]


def test_an_entity_and_a_quota_are_named_once(harness: Harness) -> None:
    twice = RequestEntryData(
        entity=[RequestEntityData(entity_type="user", entity_name="a")],
        ops=[OpData(key="producer_byte_rate", value=1.0), OpData(key="producer_byte_rate", remove=True)],
    )
    assert alter(harness, twice)[0][0] == ErrorCode.INVALID_REQUEST
    same = entry([("user", "b")], producer_byte_rate=1.0)
    assert [code for code, _ in alter(harness, same, same)] == [0, ErrorCode.INVALID_REQUEST]


def test_filters(full: Harness) -> None:
    def found(*components: tuple[str, int, str | None], strict: bool = False) -> list[Names]:
        return [names for names, _ in describe(full, *components, strict=strict)]

    def those(*names: Names) -> list[Names]:
        return sorted(names, key=str)

    assert found() == those(*EVERYBODY)
    assert found(strict=True) == []
    assert found(("user", EXACT, "alice")) == those(ALICE, ALICE_APP, ALICE_ANY)
    assert found(("user", EXACT, "alice"), strict=True) == [ALICE]
    assert found(("user", EXACT, "alice"), ("client-id", DEFAULT, None)) == [ALICE_ANY]
    assert found(("user", DEFAULT, None)) == [ANY_USER]
    assert found(("client-id", SPECIFIED, None)) == those(ALICE_APP, ALICE_ANY, APP)
    assert found(("client-id", SPECIFIED, None), strict=True) == [APP]
    assert found(("client-id", SPECIFIED, None), ("user", SPECIFIED, None), strict=True) == those(ALICE_APP, ALICE_ANY)
    assert found(("ip", SPECIFIED, None)) == [ADDRESS]
    assert found(("ip", EXACT, "192.0.2.2")) == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", EXACT, "a"), ("user", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", SPECIFIED, None), ("user", SPECIFIED, None)], ErrorCode.INVALID_REQUEST),
        ([("group", SPECIFIED, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_filters_that_make_no_sense(
    full: Harness, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    request = DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    )
    response = full.call(request, DescribeClientQuotasResponse, 0)
    assert response.error_code == code
    assert response.error_message
    assert response.entries is None


def test_other_settings_of_the_same_user_stay_and_are_no_quotas(harness: Harness) -> None:
    secret: AlterEntity = lambda now: {**now, "SCRAM-SHA-256": "salt=AA==,iterations=4096"}  # noqa: E731
    asyncio.run(harness.broker.controller.alter_entities({user_entity("alice"): secret}))
    assert describe(harness) == []
    alter(harness, entry([("user", "alice")], producer_byte_rate=5.0))
    alter(harness, entry([("user", "alice")], producer_byte_rate=None, **{"SCRAM-SHA-256": None}))
    assert dict(harness.store.image.entity_configs[user_entity("alice")]) == {
        "SCRAM-SHA-256": "salt=AA==,iterations=4096"
    }


def test_quotas_are_in_force_when_they_are_answered(harness: Harness) -> None:
    quotas = harness.broker.quotas
    alter(
        harness,
        entry([("user", "alice")], producer_byte_rate=1000.0),
        entry([("ip", None)], connection_creation_rate=3),
    )
    assert quotas.produce is not None
    budget = quotas.produce.of(("alice", "x"), 0)
    assert budget is not None
    assert budget.bound == 1000
    assert quotas.connection_rates == {None: 3}
    alter(
        harness,
        entry([("user", "alice")], producer_byte_rate=None),
        entry([("ip", None)], connection_creation_rate=None),
    )
    assert not quotas.in_force
    assert not quotas.connection_rates
