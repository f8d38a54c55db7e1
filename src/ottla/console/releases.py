"""Which release of Apache Kafka a broker speaks like, by the versions of requests that it serves: brokers tell no more.

Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.protocol.apis import OWN, ApiKey


class Sign(NamedTuple):
    """The first release in which a request was served in this version, and up to which nothing else tells apart."""

    release: str
    api: ApiKey
    version: int


SIGNS = (
    Sign("4.3", ApiKey.DESCRIBE_LOG_DIRS, 5),
    Sign("4.2", ApiKey.LIST_OFFSETS, 11),
    Sign("4.1", ApiKey.FETCH, 18),
    Sign("4.0", ApiKey.METADATA, 13),
    Sign("3.9", ApiKey.FETCH, 17),
    Sign("3.8", ApiKey.LIST_GROUPS, 5),
    Sign("3.7", ApiKey.FETCH, 16),
    Sign("3.5 or 3.6", ApiKey.FETCH, 15),
    Sign("3.3 or 3.4", ApiKey.DESCRIBE_LOG_DIRS, 4),
    Sign("3.2", ApiKey.JOIN_GROUP, 9),
    Sign("3.1", ApiKey.FETCH, 13),
    Sign("3.0", ApiKey.LIST_OFFSETS, 7),
    Sign("2.8", ApiKey.DESCRIBE_CLUSTER, 0),
)
"""Newest first."""


def speaks(highest: Mapping[int, int]) -> str:
    """`highest`: the highest version of each request that the broker serves."""
    release = next((sign.release for sign in SIGNS if highest.get(sign.api, -1) >= sign.version), "before 2.8")
    return f"Ottla, as Kafka {release}" if OWN & highest.keys() else f"Kafka {release}"
