"""AlterUserScramCredentials and DescribeUserScramCredentials."""

import asyncio

import pytest

from ottla.broker.security.sasl.scram_credentials import SHA_256, SHA_512, credential_of, read_credential
from ottla.cluster.image import user_entity
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

from .conftest import Harness


def put(name: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt") -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=salt, salted_password=b"salted"
    )


def drop(name: str, mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    harness: Harness, *alterations: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, tuple[int, str]]:
    answer = harness.call(
        AlterUserScramCredentialsRequest(
            upsertions=[alteration for alteration in alterations if isinstance(alteration, ScramCredentialUpsertion)],
            deletions=[alteration for alteration in alterations if isinstance(alteration, ScramCredentialDeletion)],
        ),
        AlterUserScramCredentialsResponse,
        0,
    )
    return {result.user: (result.error_code, result.error_message or "") for result in answer.results}


def describe(harness: Harness, *names: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    answer = harness.call(
        DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names] if names else None),
        DescribeUserScramCredentialsResponse,
        0,
    )
    return {
        result.user: (result.error_code, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in answer.results
    }


def test_a_credential_comes_changes_and_goes(harness: Harness) -> None:
    assert alter(harness, put("alice"), put("bob", 2, 8192)) == {"alice": (0, ""), "bob": (0, "")}
    text = harness.store.image.entity_configs[user_entity("bob")]["SCRAM-SHA-512"]
    assert read_credential(text) == credential_of(SHA_512, b"salted", b"salt", 8192)
    assert alter(harness, put("alice", 2)) == {"alice": (0, "")}
    assert describe(harness) == {"alice": (0, [(1, 4096), (2, 4096)]), "bob": (0, [(2, 8192)])}
    assert alter(harness, drop("alice", 1), drop("bob", 2)) == {"alice": (0, ""), "bob": (0, "")}
    assert describe(harness) == {"alice": (0, [(2, 4096)])}
    assert SHA_256.name not in harness.store.image.entity_configs[user_entity("alice")]


def test_other_settings_of_a_user_stay(harness: Harness) -> None:
    asyncio.run(harness.broker.controller.alter_entities({user_entity("a"): lambda _: {"producer_byte_rate": "1"}}))
    assert describe(harness) == {}, "a quota is no credential"
    alter(harness, put("a"))
    alter(harness, drop("a"))
    assert harness.store.image.entity_configs[user_entity("a")] == {"producer_byte_rate": "1"}


@pytest.mark.parametrize(
    ("alteration", "code", "text"),
    [
        (put(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (put("a", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (put("a", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (put("a", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (put("a", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (put("a", salt=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "must not be empty"),
        (drop(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (drop("a", 9), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (drop("a"), ErrorCode.RESOURCE_NOT_FOUND, "does not exist"),
    ],
)
def test_one_that_is_refused_does_not_keep_the_others(
    harness: Harness, alteration: ScramCredentialUpsertion | ScramCredentialDeletion, code: int, text: str
) -> None:
    answers = alter(harness, alteration, put("other"))
    assert answers["other"] == (0, "")
    assert answers[alteration.name][0] == code
    assert text in answers[alteration.name][1]


def test_a_user_is_altered_once_in_a_request(harness: Harness) -> None:
    assert alter(harness, put("a"), drop("a", 2))["a"][0] == ErrorCode.DUPLICATE_RESOURCE
    assert describe(harness) == {}


def test_describing_who_does_not_exist_or_is_named_twice(harness: Harness) -> None:
    alter(harness, put("a"))
    assert describe(harness, "a", "b") == {"a": (0, [(1, 4096)]), "b": (ErrorCode.RESOURCE_NOT_FOUND, [])}
    assert describe(harness, "a", "a") == {"a": (ErrorCode.DUPLICATE_RESOURCE, [])}
