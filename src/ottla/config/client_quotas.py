"""The quotas that can be set for users, client ids and addresses, each declared once, and the windows they count in."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.config.setting import INT_MAX, LONG_MAX, SettingType, setting

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_A_FRACTION = 1e-6


class Quota(NamedTuple):
    """One kind of quota: how its value is written, and what it says."""

    type: SettingType
    doc: str


CLIENT_QUOTAS: Mapping[str, Quota] = {
    PRODUCER_BYTE_RATE: Quota(SettingType.LONG, "bytes a second that may be produced"),
    CONSUMER_BYTE_RATE: Quota(SettingType.LONG, "bytes a second that may be fetched"),
    REQUEST_PERCENTAGE: Quota(SettingType.DOUBLE, "share of the broker's time; 100 is one thread, all of it"),
    CONTROLLER_MUTATION_RATE: Quota(SettingType.DOUBLE, "partitions a second that may be created or deleted"),
}
"""Of users, client ids, and both together."""

IP_QUOTAS: Mapping[str, Quota] = {
    CONNECTION_CREATION_RATE: Quota(SettingType.INT, "connections a second that may be opened from an address"),
}

_MOST: Mapping[SettingType, int] = {SettingType.INT: INT_MAX, SettingType.LONG: LONG_MAX}


def quota_problem(quotas: Mapping[str, Quota], key: str, value: float) -> str | None:
    """Why this value cannot be set, in Kafka's words, or None."""
    quota = quotas.get(key)
    if quota is None:
        return f"Invalid configuration key {key}"
    if not value > 0.0:  # and not <= 0: what is not a number is refused as well
        return f"Quota {key} must be greater than 0"
    if math.isinf(value):
        return f"Quota {key} must be a number: whoever is to have no bound has no quota, remove it"
    most = _MOST.get(quota.type)
    if most is None:
        return None
    if value > most:
        return f"Proposed value for {key} is too large for {'an INT' if quota.type is SettingType.INT else 'a LONG'}."
    return f"{key} cannot be a fractional value." if math.fmod(value, 1.0) > _A_FRACTION else None


def quota_text(quotas: Mapping[str, Quota], key: str, value: float) -> str:
    """A value that has no problem, as it is kept."""
    return repr(value) if quotas[key].type is SettingType.DOUBLE else str(min(int(value), _MOST[quotas[key].type]))


def read_quotas(configs: Mapping[str, str], known: Iterable[str] = (*CLIENT_QUOTAS, *IP_QUOTAS)) -> dict[str, float]:
    """The quotas among the settings of an entity. What is no number was not written by this broker, and is no quota."""
    found = {}
    for key in known:
        try:
            value = float(configs[key])
        except (KeyError, ValueError):
            continue
        if 0 < value < math.inf:
            found[key] = value
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClientQuotaSettings:
    """The windows that quotas of clients count in."""

    quota_window_num: int = setting(
        11, at_least=1,
        doc="Quotas of clients count in a sliding window made of so many pieces.",
    )  # fmt: skip
    quota_window_size_seconds: int = setting(1, at_least=1, doc="Length of each of these pieces.")
    controller_quota_window_num: int = setting(
        11, at_least=1,
        doc="The quota for creating and deleting partitions allows bursts of so many pieces' worth.",
    )  # fmt: skip
    controller_quota_window_size_seconds: int = setting(1, at_least=1, doc="Length of each of these pieces.")
