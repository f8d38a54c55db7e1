"""How far a plan has come: `kafka-reassign-partitions --verify`. The comparing is pure."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ottla.cli.admin.reassignment_plans import ANY_DIRECTORY, Plan
from ottla.client.replicas import Reassignment
from ottla.model.names import TopicPartition
from ottla.protocol.messages.describe_log_dirs import DescribeLogDirsResult


class State(Enum):
    COMPLETED = "completed"
    IN_PROGRESS = "in_progress"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


class PartitionProgress(NamedTuple):
    partition: TopicPartition
    state: State
    replicas: list[int] | None
    wanted: list[int]

    def __str__(self) -> str:
        match self.state:
            case State.COMPLETED:
                return f"Reassignment of partition {self.partition} is completed."
            case State.IN_PROGRESS:
                return f"Reassignment of partition {self.partition} is still in progress."
            case State.UNKNOWN:
                return f"There is no partition {self.partition}."
        return (
            f"There is no active reassignment of partition {self.partition}, but replica set is "
            f"{_numbers(self.replicas or [])} rather than {_numbers(self.wanted)}."
        )

    def as_json(self) -> dict[str, object]:
        return {
            **self.partition._asdict(), "state": self.state.value, "replicas": self.replicas, "wanted": self.wanted,
        }  # fmt: skip


class DirectoryProgress(NamedTuple):
    """A replica that was to be in a certain directory of its broker."""

    partition: TopicPartition
    broker: int
    wanted: str
    directory: str | None
    future: str | None
    """Where it is being copied to."""

    @property
    def in_progress(self) -> bool:
        return self.future is not None

    def __str__(self) -> str:
        replica = f"replica {self.partition}-{self.broker}"
        if self.directory == self.wanted and self.future is None:
            return f"Reassignment of {replica} completed successfully."
        if self.future == self.wanted:
            return f"Reassignment of {replica} is still in progress."
        if self.directory is None:
            return f"Partition {self.partition} is not found in any live log dir on broker {self.broker}."
        if self.future is not None:
            return (
                f"Partition {self.partition} on broker {self.broker} is being moved to log dir {self.future} instead "
                f"of {self.wanted}."
            )
        return (
            f"Partition {self.partition} on broker {self.broker} is not being moved from log dir {self.directory} to "
            f"{self.wanted}."
        )

    def as_json(self) -> dict[str, object]:
        return {
            **self.partition._asdict(), "broker": self.broker, "wanted": self.wanted, "directory": self.directory,
            "future": self.future,
        }  # fmt: skip


def partition_progress(
    plan: Plan, current: Mapping[TopicPartition, Sequence[int]], moving: Mapping[TopicPartition, Reassignment]
) -> list[PartitionProgress]:
    """Compare what was wanted with what is."""
    found = []
    for partition, placed in sorted(plan.items()):
        under_way, now = moving.get(partition), current.get(partition)
        if under_way is not None:
            replicas, state = under_way.target, State.IN_PROGRESS
        elif now is None:
            found.append(PartitionProgress(partition, State.UNKNOWN, None, placed.replicas))
            continue
        else:
            replicas = list(now)
            state = State.COMPLETED if replicas == placed.replicas else State.DIFFERENT
        found.append(PartitionProgress(partition, state, replicas, placed.replicas))
    return found


def wanted_directories(plan: Plan) -> dict[int, dict[TopicPartition, str]]:
    """Replicas that are to be in a certain directory, by broker."""
    wanted: dict[int, dict[TopicPartition, str]] = {}
    for partition, placed in plan.items():
        for broker, directory in zip(placed.replicas, placed.directories, strict=True):
            if directory != ANY_DIRECTORY:
                wanted.setdefault(broker, {})[partition] = directory
    return wanted


def directory_progress(
    broker: int, wanted: Mapping[TopicPartition, str], found: Sequence[DescribeLogDirsResult]
) -> list[DirectoryProgress]:
    current: dict[TopicPartition, str] = {}
    future: dict[TopicPartition, str] = {}
    for directory in found:
        for topic in directory.topics:
            for replica in topic.partitions:
                known = future if replica.is_future_key else current
                known[TopicPartition(topic.name, replica.partition_index)] = directory.log_dir
    return [
        DirectoryProgress(partition, broker, path, current.get(partition), future.get(partition))
        for partition, path in sorted(wanted.items())
    ]


def _numbers(brokers: Sequence[int]) -> str:
    return ",".join(str(broker) for broker in brokers)
