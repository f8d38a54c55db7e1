"""What a `python` step does in an executor: rows or batches through a function, failures beside the results.

Every output row has the step's columns, the origin if rows carry one, and the two columns of `rejecting`. So the
function runs once per row, whatever becomes of the row.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.pipelines.frames import HIDDEN, MARK, ORIGIN
from ottla.pipelines.steps.arrow_rows import GivenRows, LaidOver, taken
from ottla.pipelines.steps.rejecting import FAILURE, ROW
from ottla.pipelines.steps.user_code import Shipped, explain


@dataclass(frozen=True, kw_only=True)
class Task:
    function: Shipped
    kind: str
    """`rows`, `arrow`, `table` or `pandas`: what the function takes."""
    columns: pa.Schema
    """What the step makes, without origin and failure."""
    output: pa.Schema
    merge: bool
    """A returned row is laid over the row that went in."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        function = self.function.unpack()
        for whole in batches:
            batch = whole
            if MARK in whole.schema.names:
                # Rows that were rejected before go on as they are; the function never sees them.
                batch, rejected = _parted(whole)
                if rejected.num_rows:
                    yield _passed_on(self, rejected)
                    if not batch.num_rows:
                        continue
            if self.kind == "rows":
                yield _rows(self, function, batch)
            else:
                yield from _batches(self, function, batch)


def _parted(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    good = pc.is_null(batch.column(MARK))
    return batch.filter(good).drop_columns([MARK]), batch.filter(pc.invert(good))


def _passed_on(task: Task, rejected: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [
        rejected.column(field.name) if field.name in HIDDEN else pa.nulls(rejected.num_rows, field.type)
        for field in task.output
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=task.output)


@dataclass(frozen=True)
class _Failed:
    index: int
    error: str


def _rows(task: Task, function: Any, batch: pa.RecordBatch) -> pa.RecordBatch:
    untouched = batch.select([name for name in batch.schema.names if name != ORIGIN])
    given = GivenRows(untouched)
    made, failed = _called_for_rows(task, function, given)
    columns, made = _columns(task, given, made, failed)
    shown = {failure.index: _as_json(untouched, failure.index) for failure in failed}
    return _assemble(task, columns, made.indexes, failed, shown, batch)


class WrongResult(Exception):
    """The function returned something that the step cannot use."""


def _called_for_rows(task: Task, function: Any, given: GivenRows) -> tuple[LaidOver, list[_Failed]]:
    made, failed = LaidOver(), []
    known = frozenset(task.columns.names)
    for index, (row, values) in enumerate(given):
        try:
            results = _results(function(row), known)
        except Exception as error:  # the user's code: whatever it raises rejects this row and no other
            failed.append(_Failed(index, explain(error)))
            continue
        for result in results:
            # A function may also change the row that it was given, and return little or nothing of it.
            is_laid_over = task.merge and result is not row and tuple(row.values()) != values
            made.add(index, {**row, **result} if is_laid_over else result)
    return made, failed


def _results(result: Any, known: frozenset[str]) -> Sequence[Mapping[str, Any]]:
    """None leaves the row out, a mapping is a row, a list is several."""
    if result is None:
        return ()
    several = list(result) if isinstance(result, list | tuple | Iterator) else (result,)
    for item in several:
        if not isinstance(item, Mapping):
            raise WrongResult(f"it returned {type(item).__name__}, and a row is a dict, None or a list of dicts")
        if not item.keys() <= known:
            unknown = [name for name in item if name not in known]
            raise WrongResult(
                f"it returned `{'`, `'.join(map(str, unknown))}`, which the step does not make: "
                f"name it in `adds` (or `schema`)"
            )
    return several


def _columns(task: Task, given: GivenRows, made: LaidOver, failed: list[_Failed]) -> tuple[pa.RecordBatch, LaidOver]:
    """All results as Arrow; if one does not fit the schema, find which, and reject the row that it came from."""
    try:
        return _as_arrow(task, given, made), made
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        rejected: set[int] = set()
        for index, changes in zip(made.indexes, made.changes, strict=True):
            problem = None if index in rejected else _misfit(task.columns, _whole(task, given, index, changes))
            if problem is not None:
                rejected.add(index)
                failed.append(_Failed(index, problem))
        fitting = made.without(rejected)
        return _as_arrow(task, given, fitting), fitting


def _whole(task: Task, given: GivenRows, index: int, changes: Mapping[str, Any]) -> Mapping[str, Any]:
    return given.whole(index, changes) if task.merge else changes


def _as_arrow(task: Task, given: GivenRows, made: LaidOver) -> pa.RecordBatch:
    if not task.merge:
        return pa.RecordBatch.from_pylist([dict(changes) for changes in made.changes], schema=task.columns)
    return pa.RecordBatch.from_arrays([given.column(field, made) for field in task.columns], schema=task.columns)


def _misfit(schema: pa.Schema, row: Mapping[str, Any]) -> str | None:
    for field in schema:
        value = row.get(field.name)
        try:
            pa.array([value], type=field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return f"it returned {value!r:.60} for `{field.name}`, which is not {field.type}"
    return None


def _batches(task: Task, function: Any, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A function of whole batches. If it fails, halves are tried, down to the rows that it fails for."""
    try:
        result = _fitted(task, _called(task, function, batch))
    except Exception as error:  # the user's code, as above
        if batch.num_rows > 1:
            middle = batch.num_rows // 2
            yield from _batches(task, function, batch.slice(0, middle))
            yield from _batches(task, function, batch.slice(middle))
            return
        failed = [_Failed(0, explain(error))] if batch.num_rows else []
        shown = {0: _as_json(batch, 0)} if batch.num_rows else {}
        yield _assemble(task, pa.RecordBatch.from_pylist([], schema=task.columns), [], failed, shown, batch)
        return
    for part in result.to_batches():
        arrays = [*part.columns, *(pa.nulls(part.num_rows, field.type) for field in _unset(task))]
        yield pa.RecordBatch.from_arrays(arrays, schema=task.output)


def _called(task: Task, function: Any, batch: pa.RecordBatch) -> pa.Table:
    if task.kind == "pandas":
        made = function(batch.to_pandas())
        return pa.Table.from_pandas(made, preserve_index=False)
    made = function(pa.Table.from_batches([batch]) if task.kind == "table" else batch)
    return made if isinstance(made, pa.Table) else pa.Table.from_batches([made])


def _fitted(task: Task, made: pa.Table) -> pa.Table:
    """The result with exactly the columns of the step, in their types; an origin that it dropped is null."""
    unknown = [name for name in made.column_names if name not in task.output.names]
    missing = [name for name in task.columns.names if name not in made.column_names]
    if unknown or missing:
        what = f"lacks `{'`, `'.join(missing)}`" if missing else f"has `{'`, `'.join(unknown)}` besides"
        raise WrongResult(f"the batch that it returned {what}: name its columns in `adds` or `schema`")
    wanted = [field for field in task.output if field.name not in {MARK, FAILURE, ROW}]
    arrays = [
        made.column(field.name).cast(field.type)
        if field.name in made.column_names
        else pa.chunked_array([pa.nulls(made.num_rows, field.type)])
        for field in wanted
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(wanted))


def _unset(task: Task) -> list[Any]:
    """The columns at the end that a good row has nothing in."""
    return [field for field in task.output if field.name in {MARK, FAILURE, ROW}]


def _assemble(
    task: Task,
    columns: pa.RecordBatch,
    from_rows: list[int],
    failed: list[_Failed],
    shown: Mapping[int, str],
    batch: pa.RecordBatch,
) -> pa.RecordBatch:
    good = columns.num_rows
    arrays: list[Any] = [_followed_by_nulls(column, len(failed)) for column in columns.columns]
    if ORIGIN in task.output.names:
        arrays.append(taken(batch.column(ORIGIN), [*from_rows, *(failure.index for failure in failed)]))
    arrays.extend(pa.nulls(good + len(failed), field.type) for field in _unset(task) if field.name == MARK)
    arrays.append(pa.array([None] * good + [failure.error for failure in failed], pa.string()))
    arrays.append(pa.array([None] * good + [shown[failure.index] for failure in failed], pa.string()))
    return pa.RecordBatch.from_arrays(arrays, schema=task.output)


def _followed_by_nulls(column: Any, count: int) -> Any:
    return pa.concat_arrays([column, pa.nulls(count, column.type)]) if count else column


def _as_json(batch: pa.RecordBatch, index: int) -> str:
    """The row as it came, read anew: the function may have changed the dict that it was given."""
    row = batch.slice(index, 1).to_pylist()[0]
    return json.dumps({name: value for name, value in row.items() if name != ORIGIN}, default=str)
