"""What there is to be allowed: kinds of resources, operations on them, and what each pair is called on the wire."""

from enum import IntEnum
from typing import NamedTuple


class Resource(IntEnum):
    """Kinds of resources that rights are given on, by their number in requests."""

    __hash__ = int.__hash__  # an enum's own is Python's, and rules are looked up by the hundred thousand

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Operation(IntEnum):
    """What may be done to a resource, by its number in requests and its bit in authorized operations."""

    __hash__ = int.__hash__

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


_O = Operation

GRANTABLE = {
    Resource.TOPIC: frozenset(
        {_O.READ, _O.WRITE, _O.CREATE, _O.DELETE, _O.ALTER, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}
    ),
    Resource.GROUP: frozenset({_O.READ, _O.DELETE, _O.DESCRIBE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}),
    Resource.CLUSTER: frozenset(
        {_O.CREATE, _O.ALTER, _O.DESCRIBE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}
        | {_O.IDEMPOTENT_WRITE}
    ),
    Resource.TRANSACTIONAL_ID: frozenset({_O.WRITE, _O.DESCRIBE, _O.TWO_PHASE_COMMIT}),
    Resource.DELEGATION_TOKEN: frozenset({_O.DESCRIBE}),
    Resource.USER: frozenset({_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS}),
}
"""The operations that an access control list may name for a kind of resource, besides "all"."""


class Right(NamedTuple):
    operation: Operation
    resource: Resource

    def __str__(self) -> str:
        return f"{_words(self.operation)} on {_words(self.resource)}"


class Need(NamedTuple):
    """One thing that a request must be allowed: any of these rights suffices."""

    any_of: tuple[Right, ...]
    when: str = ""
    """Which requests, or which parts of one, this is about; empty: all."""


def _words(member: IntEnum) -> str:
    return "".join(word.capitalize() for word in member.name.split("_"))
