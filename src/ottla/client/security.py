"""TLS and SASL of a client."""

from collections.abc import Mapping
from typing import NamedTuple

SECURITY_SETTINGS: frozenset[str] = frozenset()


class Security(NamedTuple):
    protocol: str = "PLAINTEXT"


PLAINTEXT = Security()


def parse_security(settings: Mapping[str, str], *, prefix: str = "") -> Security:
    return PLAINTEXT
