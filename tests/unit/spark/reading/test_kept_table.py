"""A compacted topic that is kept as a table: what is read anew, and when it begins again. A real broker, no Spark."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition
from tests.spark.feeding import Records, create_topic

from ottla.client.admin import delete_topic
from ottla.client.cluster import Cluster
from ottla.spark import loop
from ottla.spark.reading import kept_table
from ottla.spark.reading.fetch import read_range
from ottla.spark.reading.kept_table import KeptTableReader
from ottla.spark.reading.offsets import OffsetRange
from ottla.testing import RunningBroker
from ottla.testing import broker as started_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with started_broker() as running:
        yield running


class Table:
    """One process's view of a topic, and what it had to read for it."""

    def __init__(self, broker: RunningBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topic = topic
        self.broker = broker
        self.records = Records(broker.bootstrap)
        self._read: list[OffsetRange] = []
        options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, "includeHeaders": "true"}
        self._reader = KeptTableReader(options)
        before = read_range

        def counted(wanted: OffsetRange, options: Any) -> Any:
            self._read.append(wanted)
            return before(wanted, options)

        monkeypatch.setattr(kept_table, "read_range", counted)

    def rows(self) -> dict[str, str]:
        self._read.clear()
        batches = list(self._reader.read(InputPartition("all")))
        found = [row for batch in batches for row in batch.to_pylist()]
        assert len({row["key"] for row in found}) == len(found)
        return {row["key"].decode(): row["value"].decode() for row in found}

    @property
    def offsets_read(self) -> int:
        return sum(each.size for each in self._read)

    @property
    def count(self) -> int:
        return self._reader.records()


@pytest.fixture
def table(broker: RunningBroker, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> Table:
    topic = unique("table")
    create_topic(broker.bootstrap, topic, 2)
    kept_table._kept.clear()
    return Table(broker, topic, monkeypatch)


def test_only_what_is_new_is_read_again(table: Table) -> None:
    assert table.rows() == {}
    table.records.send(table.topic, ["1", "2", "3", None], keys=["a", "b", "a", "b"])
    assert table.rows() == {"a": "3"}
    assert table.offsets_read == 4
    table.records.send(table.topic, ["5", None, "7"], keys=["b", "a", None])
    assert table.rows() == {"b": "5"}
    assert table.offsets_read == 3
    assert table.rows() == {"b": "5"}
    assert table.offsets_read == 0
    assert table.count == 7


def test_a_key_that_moved_has_its_latest_value(table: Table) -> None:
    table.records.send(table.topic, ["new"], keys=["a"], partition=0, timestamp_ms=2_000)
    table.records.send(table.topic, ["old"], keys=["a"], partition=1, timestamp_ms=1_000)
    assert table.rows() == {"a": "new"}
    table.records.send(table.topic, [None], keys=["a"], partition=1, timestamp_ms=3_000)
    assert table.rows() == {}


def test_a_topic_that_was_made_again_is_another_table(table: Table) -> None:
    table.records.send(table.topic, ["1", "2"], keys=["a", "b"])
    assert table.rows() == {"a": "1", "b": "2"}

    async def delete() -> None:
        async with Cluster(table.broker.bootstrap) as cluster:
            await delete_topic(cluster, table.topic)

    loop.run(delete())
    create_topic(table.broker.bootstrap, table.topic, 2)
    Records(table.broker.bootstrap).send(table.topic, ["9", "9", "9"], keys=["c", "d", "c"])
    assert table.rows() == {"c": "9", "d": "9"}


def test_a_large_table_or_an_old_one_is_read_whole(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.records.send(table.topic, ["1", "2"], keys=["a", "b"])
    with monkeypatch.context() as patched:
        patched.setattr(kept_table, "BYTES_MAX", 1)
        assert table.rows() == {"a": "1", "b": "2"}
    assert table.rows() == {"a": "1", "b": "2"}
    assert table.offsets_read == 2
    monkeypatch.setattr(kept_table, "AGE_S_MAX", -1.0)
    assert table.rows() == {"a": "1", "b": "2"}
    assert table.offsets_read == 2
