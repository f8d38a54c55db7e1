"""What becomes of a request to change SCRAM credentials of users. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ottla.broker.security.sasl.scram_credentials import (
    BY_NUMBER,
    ScramMechanism,
    check_iterations,
    credential_of,
    write_credential,
)
from ottla.model.errors import ApiError, ErrorCode


class Upsertion(NamedTuple):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"Upsertion({self.user!r}, {self.mechanism})"  # no secrets


class Deletion(NamedTuple):
    user: str
    mechanism: int


ScramAlteration = Upsertion | Deletion


def refusals(alterations: Sequence[ScramAlteration]) -> dict[str, ApiError]:
    """Users for whom nothing is done, whatever the credentials are that there are."""
    times = Counter(alteration.user for alteration in alterations)
    refused: dict[str, ApiError] = {}
    for alteration in alterations:
        try:
            _check(alteration)
        except ApiError as error:
            refused.setdefault(alteration.user, error)
        if times[alteration.user] > 1:
            text = "A user credential cannot be altered twice in the same request"
            refused[alteration.user] = ApiError(ErrorCode.DUPLICATE_RESOURCE, text)
    return refused


def altered(alteration: ScramAlteration, configs: Mapping[str, str]) -> Mapping[str, str]:
    """A user's settings after this, from those before: what is not about SCRAM stays. ApiError."""
    mechanism = BY_NUMBER[alteration.mechanism]
    if isinstance(alteration, Deletion):
        if mechanism.name not in configs:
            raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        return {name: value for name, value in configs.items() if name != mechanism.name}
    credential = credential_of(mechanism, alteration.salted_password, alteration.salt, alteration.iterations)
    return {**configs, mechanism.name: write_credential(credential)}


def _check(alteration: ScramAlteration) -> ScramMechanism:
    if not alteration.user:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    mechanism = BY_NUMBER.get(alteration.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(alteration, Upsertion):
        check_iterations(alteration.iterations)
        if not alteration.salt or not alteration.salted_password:
            raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt and salted password must not be empty")
    return mechanism
