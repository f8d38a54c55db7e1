"""What clients did and what they were told, as a history that a checker can judge.

A process is one life of one client: after a crash its next life is another process. An operation is written down when
it is invoked and completed in place when its outcome is known, so one that nobody ever answered says so by itself.
Times are of one monotonic clock. Values are numbers that no two sends share, whatever became of the first.
"""

import enum
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from ottla.model.names import TopicPartition


class Outcome(enum.Enum):
    OK = "ok"
    """The broker said that it is done."""
    FAIL = "fail"
    """It did not happen, and will not."""
    INFO = "info"
    """It may have happened, or may still happen."""


class Operation(msgspec.Struct, tag=True, kw_only=True):
    process: int
    invoked: int
    completed: int | None = None
    outcome: Outcome = Outcome.INFO

    NAME: ClassVar[str]


class Begin(Operation):
    transaction: int

    NAME: ClassVar[str] = "begin"


class Send(Operation):
    """One record. A copier says by `source` which value it made this one from."""

    transaction: int
    partition: TopicPartition
    value: int
    source: int | None = None
    offset: int | None = None
    """Where the broker said it is."""

    NAME: ClassVar[str] = "send"


class Commit(Operation):
    transaction: int

    NAME: ClassVar[str] = "commit"


class Abort(Operation):
    transaction: int

    NAME: ClassVar[str] = "abort"


class Assign(Operation):
    """From here on the process reads this partition anew, from an offset that it does not necessarily know."""

    partition: TopicPartition

    NAME: ClassVar[str] = "assign"


class Poll(Operation):
    """Records of one partition in the order in which one call returned them."""

    partition: TopicPartition
    offsets: list[int]
    values: list[int]
    committed_only: bool = True
    """Whether the reader asked for read_committed."""

    NAME: ClassVar[str] = "poll"


class Crash(Operation):
    """The end of a process, with whatever it had under way."""

    NAME: ClassVar[str] = "crash"


AnyOperation = Begin | Send | Commit | Abort | Assign | Poll | Crash


def write_history(path: Path, history: Iterable[AnyOperation]) -> None:
    """One operation a line, so that a history can be looked at with a pager and checked again."""
    with path.open("wb") as file:
        for operation in history:
            file.write(msgspec.json.encode(operation) + b"\n")


def read_history(path: Path) -> Iterator[AnyOperation]:
    decoder = msgspec.json.Decoder(AnyOperation)
    with path.open("rb") as file:
        for line in file:
            yield decoder.decode(line)
