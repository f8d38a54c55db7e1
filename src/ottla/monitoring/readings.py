"""What was read of a cluster: where partitions are, where their logs end, what groups have committed."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.model.names import TopicPartition


class PartitionPlace(NamedTuple):
    """Where a partition is, as the metadata says."""

    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class Owner(NamedTuple):
    """The member that a partition is assigned to."""

    host: str
    client_id: str


class GroupReading(NamedTuple):
    """What one look at a group said."""

    commits: Mapping[TopicPartition, int]
    owners: Mapping[TopicPartition, Owner]
    state: str = ""
    members: int = 0


class Reading(NamedTuple):
    """One look at a cluster. What could not be read is not in it."""

    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, GroupReading]
    topics: Mapping[str, int]
    """How many partitions each topic has."""
    whole: bool
    """Whether everybody was reached: then a group that is not in it is gone."""
