"""What sources that follow a column of a table have in common, whatever the database."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from ottla.pipelines.connectors.base import SourceContext
from ottla.pipelines.connectors.options import duration_problems
from ottla.pipelines.connectors.tables.increasing import Mark, from_offset, to_offset
from ottla.pipelines.errors import ConnectorProblem


class FollowingOptions(Protocol):
    @property
    def table(self) -> str | None: ...
    @property
    def query(self) -> str | None: ...
    @property
    def increasing(self) -> str | None: ...
    @property
    def updated(self) -> str | None: ...
    @property
    def delay(self) -> str: ...


def following_problems(options: FollowingOptions, default_delay: str) -> list[str]:
    found = duration_problems("delay", options.delay)
    if (options.table is None) == (options.query is None):
        found.append("table: name a `table` or write a `query`, one of the two")
    if options.delay != default_delay and options.updated is None:
        found.append("delay: only goes with `updated`")
    return found


def require_followed(options: FollowingOptions, context: SourceContext, system: str) -> None:
    if options.increasing is None and options.updated is None:
        raise ConnectorProblem(
            f"source {context.name}: a stream from {system} follows a column that grows; name it with "
            "`increasing` (an id) or `updated` (the time of the last change)"
        )


class FollowingReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are the last seen values; the same range gives the same rows unless they were changed or deleted."""

    def __init__(self, max_rows: int | None) -> None:
        self._max_rows = max_rows
        self._bound: Mark | None = None
        """Where a run over what is there now ends."""

    @abstractmethod
    def _end(self, after: Mark, bound: Mark | None, max_rows: int | None) -> Mark:
        """The last row that may be read now, not behind `bound`; `after` itself if there is none."""

    @abstractmethod
    def _parts(self, after: Mark, until: Mark) -> Sequence[InputPartition]:
        """Tasks that read the rows behind `after`, up to and with `until`."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return to_offset(Mark())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._max_rows) if self._max_rows else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._bound = self._end(Mark(), None, None)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if self._bound is not None and self._bound.is_start:
            return start
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        return to_offset(self._end(from_offset(start), self._bound, rows))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        after, until = from_offset(start), from_offset(end)
        return [] if after == until else self._parts(after, until)
