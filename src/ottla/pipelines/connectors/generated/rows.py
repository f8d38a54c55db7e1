"""Rows out of nothing: what row number n holds follows from the seed alone, so a checker can compute it again.

All of it is arithmetic on arrays of row numbers: `build(plan, start, stop)` gives the same rows however a range is cut.
Nothing here knows Spark.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Meta

Numbers = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
Column: TypeAlias = "pa.Array[Any]"

_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gia", "Hugo", "Ines", "Jan", "Kira", "Leo", "Mia", "Noa")
_LAST = ("Adler", "Berg", "Costa", "Dahl", "Ek", "Fox", "Gold", "Haas", "Ito", "Jung", "Kern", "Lang", "Moss")
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Counting(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="sequence", forbid_unknown_fields=True):
    """start, start + step, ..."""

    start: int = 0
    step: int = 1


class Choice(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="choice", forbid_unknown_fields=True):
    """One of some values, each as often as its weight says."""

    of: Annotated[tuple[str | int | float | bool | None, ...], Meta(min_length=1)]
    weights: tuple[float, ...] = ()


class Integer(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="integer", forbid_unknown_fields=True):
    """A whole number, both ends included."""

    low: int
    high: int


class Number(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="number", forbid_unknown_fields=True):
    low: float
    high: float
    digits: Annotated[int, Meta(ge=0, le=12)] = 2


class Timestamp(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="timestamp", forbid_unknown_fields=True
):
    """Event time: each row a step later; late rows (`late`) are moved back."""

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    step_ms: Annotated[int, Meta(ge=0)] = 1000


class Uuid(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="uuid", forbid_unknown_fields=True):
    pass


class Name(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="name", forbid_unknown_fields=True):
    """Looks like a person's name."""


class Template(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="template", forbid_unknown_fields=True):
    """Text with other fields in it: `order {id} of {item}`. `{row}` is the row number."""

    text: str


Field = Counting | Choice | Integer | Number | Timestamp | Uuid | Name | Template


class Late(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    share: Annotated[float, Meta(ge=0, le=1)]
    by_ms: Annotated[int, Meta(ge=1)]
    """At most so much."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to generate."""

    fields: dict[str, Field]
    seed: int = 0
    duplicates: float = 0.0
    duplicate_distance: int = 1000
    late: Late | None = None
    broken: float = 0.0
    records: Literal["json"] | None = None
    key: str | None = None


def plan_problems(plan: Plan) -> list[str]:
    found = []
    for name, field in plan.fields.items():
        if isinstance(field, Choice) and field.weights and len(field.weights) != len(field.of):
            found.append(f"fields.{name}: {len(field.of)} values and {len(field.weights)} weights")
        if isinstance(field, Choice) and field.weights and (min(field.weights) < 0 or sum(field.weights) <= 0):
            found.append(f"fields.{name}: weights are not negative, and not all zero")
        if isinstance(field, Choice) and len({_family(value) for value in field.of if value is not None}) > 1:
            found.append(f"fields.{name}: the values are of different types")
        if isinstance(field, Integer | Number) and field.low > field.high:
            found.append(f"fields.{name}: low is above high")
        if isinstance(field, Template):
            found += _template_problems(name, field, plan)
    if plan.late is not None and not any(isinstance(field, Timestamp) for field in plan.fields.values()):
        found.append("late: there is no field of kind timestamp to be late in")
    if plan.broken and plan.records is None:
        found.append("broken: only records can be broken; set `records: json`")
    if plan.key is not None and (plan.records is None or plan.key not in plan.fields):
        found.append("key: name a field, and set `records: json`")
    return found


def _template_problems(name: str, field: Template, plan: Plan) -> list[str]:
    others = {other: 0 for other, kind in plan.fields.items() if not isinstance(kind, Template)}
    try:
        field.text.format(row=0, **others)
    except (KeyError, IndexError, ValueError) as error:
        return [f"fields.{name}: {field.text!r} names what is not there ({error}); fields: {', '.join(others)}, row"]
    return []


def _family(value: object) -> type:
    return float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def draw(plan: Plan, what: str, rows: Rows) -> Numbers:
    """Random bits that depend on seed, purpose and row number only (splitmix64's finalizer)."""
    purpose = int.from_bytes(uuid.uuid5(uuid.NAMESPACE_OID, f"{plan.seed}/{what}").bytes[:8], "big")
    with np.errstate(over="ignore"):
        mixed = np.uint64(purpose) + (rows.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def share(plan: Plan, what: str, rows: Rows) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1)."""
    return (draw(plan, what, rows) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def originals(plan: Plan, rows: Rows) -> Rows:
    """The row whose content each row has: itself, or an earlier one that it repeats."""
    found = rows.copy()
    if plan.duplicates <= 0:
        return found
    while True:
        repeats = (share(plan, "duplicate", found) < plan.duplicates) & (found > 0)
        if not repeats.any():
            return found
        chosen = found[repeats]
        back = (draw(plan, "distance", chosen) % np.uint64(plan.duplicate_distance)).astype(np.int64) + 1
        found[repeats] = np.maximum(chosen - back, 0)


def late_rows(plan: Plan, rows: Rows) -> npt.NDArray[np.bool_]:
    if plan.late is None:
        return np.zeros(len(rows), dtype=np.bool_)
    return share(plan, "late", originals(plan, rows)) < plan.late.share


def broken_rows(plan: Plan, rows: Rows) -> npt.NDArray[np.bool_]:
    """Each row is broken on its own: of two that are the same, one may be whole."""
    return share(plan, "broken", rows) < plan.broken


def columns(plan: Plan, rows: Rows) -> dict[str, Column]:
    content = originals(plan, rows)
    made: dict[str, Column] = {}
    for name, field in plan.fields.items():
        if not isinstance(field, Template):
            made[name] = _BUILD[type(field)](plan, name, field, content)
    for name, field in plan.fields.items():
        if isinstance(field, Template):
            made[name] = _filled(field.text, content, made)
    return {name: made[name] for name in plan.fields}


def _filled(text: str, rows: Rows, made: Mapping[str, Column]) -> Column:
    used = {name: column.to_pylist() for name, column in made.items() if "{" + name in text}
    lines = [
        text.format(row=row, **{name: values[index] for name, values in used.items()})
        for index, row in enumerate(rows.tolist())
    ]
    return pa.array(lines, pa.string())


def _sequence(plan: Plan, name: str, field: Counting, rows: Rows) -> Column:
    return pa.array(field.start + rows * field.step, pa.int64())


def _choice(plan: Plan, name: str, field: Choice, rows: Rows) -> Column:
    weights = np.array(field.weights or [1.0] * len(field.of), dtype=np.float64)
    edges = np.cumsum(weights) / weights.sum()
    picked = np.minimum(np.searchsorted(edges, share(plan, name, rows), side="right"), len(field.of) - 1)
    return pa.array(list(field.of), choice_type(field)).take(picked)


def choice_type(field: Choice) -> pa.DataType:
    kinds = {type(value) for value in field.of if value is not None}
    if kinds <= {int} and kinds:
        return pa.int64()
    if kinds <= {int, float} and kinds:
        return pa.float64()
    return pa.bool_() if kinds == {bool} else pa.string()


def _integer(plan: Plan, name: str, field: Integer, rows: Rows) -> Column:
    span = np.uint64(field.high - field.low + 1)
    return pa.array((draw(plan, name, rows) % span).astype(np.int64) + field.low, pa.int64())


def _number(plan: Plan, name: str, field: Number, rows: Rows) -> Column:
    spread = field.low + share(plan, name, rows) * (field.high - field.low)
    return pa.array(np.round(spread, field.digits), pa.float64())


def _timestamp(plan: Plan, name: str, field: Timestamp, rows: Rows) -> Column:
    start_us = round(field.start.timestamp() * 1e6)
    micros = start_us + rows * (field.step_ms * 1000)
    if plan.late is not None:
        behind = (draw(plan, "lateness", rows) % np.uint64(plan.late.by_ms)).astype(np.int64) + 1
        micros = np.where(share(plan, "late", rows) < plan.late.share, micros - behind * 1000, micros)
    return pa.array(micros, pa.timestamp("us", "UTC"))


def _uuid(plan: Plan, name: str, field: Uuid, rows: Rows) -> Column:
    high, low = draw(plan, name, rows), draw(plan, f"{name}/low", rows)
    made = [
        str(uuid.UUID(int=(int(one) << 64) | int(two), version=4))
        for one, two in zip(high.tolist(), low.tolist(), strict=True)
    ]
    return pa.array(made, pa.string())


def _name(plan: Plan, name: str, field: Name, rows: Rows) -> Column:
    all_names = pa.array([f"{first} {last}" for first in _FIRST for last in _LAST], pa.string())
    return all_names.take((draw(plan, name, rows) % np.uint64(len(all_names))).astype(np.int64))


_BUILD: dict[type, Callable[[Plan, str, Any, Rows], Column]] = {
    Counting: _sequence,
    Choice: _choice,
    Integer: _integer,
    Number: _number,
    Timestamp: _timestamp,
    Uuid: _uuid,
    Name: _name,
}


def as_json(made: Mapping[str, Column]) -> list[bytes]:
    names = list(made)
    lists: Sequence[list[Any]] = [column.to_pylist() for column in made.values()]
    encode = msgspec.json.encode
    return [encode(dict(zip(names, values, strict=True))) for values in zip(*lists, strict=True)]


def build(plan: Plan, start: int, stop: int) -> pa.RecordBatch:
    """Rows `start` to `stop` (without it), as columns or as records with key, value and the row's number."""
    rows = np.arange(start, stop, dtype=np.int64)
    made = columns(plan, rows)
    if plan.records is None:
        return pa.RecordBatch.from_pydict(made)
    values = as_json(made)
    for index in np.flatnonzero(broken_rows(plan, rows)).tolist():
        values[index] = values[index][: len(values[index]) // 2]
    keys = [None if key is None else str(key).encode() for key in made[plan.key].to_pylist()] if plan.key else None
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array(keys, pa.binary()) if keys is not None else pa.nulls(len(rows), pa.binary()),
            "value": pa.array(values, pa.binary()),
            "row": pa.array(rows),
        }
    )
