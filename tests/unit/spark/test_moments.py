"""Times of collected rows, on a machine whose clock does not show UTC."""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    DateType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from ottla.spark.moments import in_utc

AT = datetime(2024, 2, 5, 10, 30, 0, 250_000, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_newfoundland(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "NST3:30NDT,M3.2.0,M11.1.0")  # spelled out, for machines that know no zones
        time.tzset()
        yield
    time.tzset()


def collected(moment: datetime) -> datetime:
    """As PySpark makes it of what Java says."""
    since = moment - datetime.fromtimestamp(0, UTC)
    found: datetime = TimestampType().fromInternal(since // timedelta(microseconds=1))
    return found


def test_times_at_any_depth() -> None:
    at = collected(AT)
    assert at == datetime(2024, 2, 5, 7, 0, 0, 250_000)  # noqa: DTZ001
    inner = StructType().add("at", TimestampType()).add("n", IntegerType())
    schema = (
        StructType()
        .add("i", IntegerType())
        .add("at", TimestampType())
        .add("many", ArrayType(TimestampType()))
        .add("by", MapType(StringType(), TimestampType()))
        .add("in", ArrayType(inner))
    )
    row = Row(*schema.names)(1, at, [at, None], {"x": at}, [Row("at", "n")(at, 1), None])
    [found] = in_utc([row], schema)
    assert (found.i, found.at, found.many, found.by) == (1, AT, [AT, None], {"x": AT})
    assert found["in"][0].asDict() == {"at": AT, "n": 1}
    assert found["in"][1] is None
    assert found.at.tzinfo is UTC


def test_the_hour_that_a_clock_shows_twice() -> None:
    twice = [datetime(2024, 11, 3, hour, 45, tzinfo=UTC) for hour in (3, 4, 5)]
    found = in_utc([Row("at")(collected(moment)) for moment in twice], StructType().add("at", TimestampType()))
    assert [row.at for row in found] == twice


def test_what_has_no_zone_gets_none() -> None:
    naive, day = datetime(2024, 2, 5, 10, 30), date(2024, 2, 5)  # noqa: DTZ001
    counts = MapType(StringType(), IntegerType())
    schema = StructType().add("n", TimestampNTZType()).add("d", DateType()).add("t", TimestampType()).add("m", counts)
    [found] = in_utc([Row(*schema.names)(naive, day, None, {"a": 1})], schema)
    assert tuple(found) == (naive, day, None, {"a": 1})
