"""Which of the quotas that are set counts for a client, and who shares it. Pure.

The most specific one, in Kafka's order. A quota for a user alone is one budget for all its clients; one for a client id
alone is one budget for all who call themselves so; any other is a budget for this user with this client id.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from ottla.cluster.image import Entity

T = TypeVar("T")

USERS, CLIENTS, IPS = "users", "clients", "ips"
DEFAULT = None
"""The name that stands for everybody who has no quota by name."""

ANYBODY = ""
"""In place of a user, or of a client id: whoever it is shares the budget."""


class Sharers(NamedTuple):
    """Who draws on one budget."""

    user: str
    client_id: str


def levels(user: str, client_id: str) -> list[tuple[Entity, Sharers]]:
    """The entities whose quota may count, the most specific first.

    A client without an id has none that a quota could name, and is not meant by the default of client ids either.
    """
    all_of_user = Sharers(user, ANYBODY)
    if not client_id:
        return [(((USERS, user),), all_of_user), (((USERS, DEFAULT),), all_of_user)]
    this_one, all_of_id = Sharers(user, client_id), Sharers(ANYBODY, client_id)
    return [
        (((USERS, user), (CLIENTS, client_id)), this_one),
        (((USERS, user), (CLIENTS, DEFAULT)), this_one),
        (((USERS, user),), all_of_user),
        (((USERS, DEFAULT), (CLIENTS, client_id)), this_one),
        (((USERS, DEFAULT), (CLIENTS, DEFAULT)), this_one),
        (((USERS, DEFAULT),), all_of_user),
        (((CLIENTS, client_id),), all_of_id),
        (((CLIENTS, DEFAULT),), all_of_id),
    ]


def quota_for(quotas: Mapping[Entity, T], user: str, client_id: str) -> tuple[Sharers, T] | None:
    """Who shares the quota that counts for this client, and what it is; None when there is none."""
    for entity, sharers in levels(user, client_id):
        found = quotas.get(entity)
        if found is not None:
            return sharers, found
    return None
