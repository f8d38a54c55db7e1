"""Every example passes its own tests, and the smaller ones run: what goes in comes out where they say."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession
from tests.committed import read_committed
from tests.spark.feeding import create_topic

from ottla.cli.main import main
from ottla.testing import RunningBroker, broker
from ottla.testing.load import quiet

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted([*EXAMPLES.glob("*/pipeline.yaml"), *EXAMPLES.glob("*/pipeline.sql")])


@pytest.fixture(scope="module")
def running() -> Iterator[RunningBroker]:
    """A broker of our own: examples call their topics what people would."""
    with broker() as started:
        yield started


class Place:
    """A copy of an example's folder, to run it in."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self.folder = folder
        self.bootstrap = bootstrap
        self.file = next(path for path in folder.glob("pipeline.*"))

    def run(self, command: str, *more: str) -> None:
        options = ["--bootstrap-server", self.bootstrap, "--state-dir", str(self.folder / "state"), *more]
        assert main(["pipeline", command, str(self.file), *options]) == 0

    def send(self, topic: str, *rows: dict[str, object] | str) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap}, logger=quiet)
        for row in rows:
            producer.produce(topic, row if isinstance(row, str) else json.dumps(row))
        assert producer.flush(30) == 0

    def values(self, topic: str) -> list[dict[str, object]]:
        return [json.loads(record.value or b"") for record in read_committed(self.bootstrap, topic)]


@pytest.fixture
def place(request: pytest.FixtureRequest, spark: SparkSession, running: RunningBroker, tmp_path: Path) -> Place:
    shutil.copytree(EXAMPLES / str(request.param), tmp_path / "example")
    return Place(tmp_path / "example", running.bootstrap)


def example(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", [name], indirect=True)


def test_all_examples_are_found() -> None:
    assert [path.parent.name for path in FILES] == [
        "big_orders", "files_to_database", "one_topic_twice", "orders", "sessions",
    ]  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_an_example_passes_its_own_tests(path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["pipeline", "test", str(path)])
    printed = capsys.readouterr()
    assert code == 0, printed.out + printed.err
    assert "0 failed" in printed.out


@example("files_to_database")
def test_files_reach_the_database_through_a_topic(place: Place) -> None:
    def rows() -> list[tuple[str, float]]:
        with closing(sqlite3.connect(place.folder / "weather.db")) as database:
            return database.execute("SELECT station, celsius FROM readings ORDER BY station, at").fetchall()

    place.run("run", "--once")
    assert rows() == [("Brno", -3.5), ("Brno", 1.25), ("Praha", -1.0), ("Praha", 0.5)]
    (letter,) = read_committed(place.bootstrap, "weather.dead")
    assert letter.value == b"Praha,2026-01-01T12:00:00Z,451"
    (place.folder / "inbox" / "corrected.csv").write_text("station,at,celsius\nBrno,2026-01-01T12:00:00Z,2.0\n")
    place.run("run", "--once")
    assert rows() == [("Brno", -3.5), ("Brno", 2.0), ("Praha", -1.0), ("Praha", 0.5)]


@example("big_orders")
def test_sql_alone_is_a_pipeline(place: Place) -> None:
    create_topic(place.bootstrap, "orders", 2)
    place.send("orders", {"id": "a", "item": "tea", "amount": 200}, {"id": "b", "item": "tea", "amount": 2}, "{oops")
    place.run("run", "--once")
    assert place.values("orders.big") == [{"id": "a", "item": "TEA", "gross": 240.0}]
    assert [record.value for record in read_committed(place.bootstrap, "orders.dead")] == [b"{oops"]


@example("sessions")
def test_sessions_and_state_of_ones_own(place: Place) -> None:
    create_topic(place.bootstrap, "clicks")
    clicks: list[dict[str, object]] = [
        {"user": "ada", "page": f"/{number}", "at": f"2026-01-01T10:{10 * number:02d}:00Z"} for number in range(4)
    ]
    place.send("clicks", *clicks, {"user": "bob", "page": "/", "at": "2026-01-01T15:00:00Z"})
    place.run("run", "--once")
    place.send("clicks", {"user": "ada", "page": "/", "at": "2026-01-01T15:30:00Z"})
    place.run("run", "--once")  # a new driver: its state comes from the checkpoint
    levels = [(row["user"], row["clicks"], row["level"]) for row in place.values("visits.levels")]
    assert levels == [("ada", 3, "silver"), ("ada", 5, "gold")]
    (session,) = place.values("visits.sessions")
    assert (session["user"], session["clicks"], session["first_page"]) == ("ada", 4, "/0")


@example("one_topic_twice")
def test_stream_and_batch_over_one_topic_agree(place: Place) -> None:
    create_topic(place.bootstrap, "payments")
    place.send("payments", {"id": "a", "amount": 1.5, "at": "2026-01-01T10:00:00Z"})
    place.run("run", "--once")
    place.send("payments", {"id": "b", "amount": 2.0, "at": "2026-01-01T11:00:00Z"})
    place.send("payments", {"id": "c", "amount": 4.0, "at": "2026-01-02T11:00:00Z"})
    place.run("run", "--once")
    place.run("run", "--batch", "--version", "exact")
    with closing(sqlite3.connect(place.folder / "daily.db")) as database:
        stream, batch = (
            database.execute(f"SELECT payments, total FROM {table} ORDER BY window_start").fetchall()
            for table in ("totals", "totals_exact")
        )
    assert stream == batch == [(2, 3.5), (1, 4.0)]
