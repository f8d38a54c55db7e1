"""Rows that fail stay in the frame: every kind of step passes them on, and they are read, counted and written once."""

import gc
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.dataset
import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from tests.metrics_moved import STATEFUL, moved, wait_until_moved
from tests.pipelines.steps.conftest import make_step
from tests.pipelines.world import SCHEMA, World, order

from ottla.pipelines.connectors.files.publishing import Publication
from ottla.pipelines.connectors.topic import TopicSource
from ottla.pipelines.frames import HIDDEN, MARK, ORIGIN
from ottla.pipelines.parts import Reading, SourcePart, StepPart
from ottla.pipelines.runner import batches
from ottla.pipelines.runner.chain import Chain
from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.metrics import metrics_text
from ottla.pipelines.runner.queries import start_query
from ottla.pipelines.runner.status import status_document
from ottla.pipelines.runner.supervisor import State
from ottla.pipelines.runner.topics import prepare_topics

CALLS_MAX = 100
"""Of py4j, for one batch of a pipeline that is all in the stream: each costs the driver's processor, and Spark's."""
DOUBLED = """
def doubled(row):
    if row["n"] == 7:
        raise ValueError("seven")
    return {"twice": row["n"] * 2}
"""
STEPS: list[tuple[str, dict[str, Any]]] = [
    ("filter", {"filter": "n <> 0"}),
    ("filter", {"filter": "100 / n < 200"}),
    ("expect", {"rule": "n < 50"}),
    ("expect", {"rule": "n <> 5", "otherwise": "drop"}),
    ("map", {"columns": {"text": "cast(n AS STRING)"}}),
    ("map", {"columns": {"part": "10 div (n - 2)"}}),
    ("cast", {"columns": {"text": "INT"}}),
    ("join", {"with": "names", "on": "n", "type": "left"}),
    ("join", {"with": "names", "on": "n", "prefix": "again_"}),
    ("flatten", {"flatten": "lines", "into": "line"}),
    ("python", {"python": "mine:doubled", "adds": "twice BIGINT"}),
    ("deduplicate", {"keys": ["n"]}),
    ("watermark", {"time": "at", "delay": "1 hour"}),
    ("sql", {"sql": "SELECT n, name, line, twice, at FROM input WHERE n <> 6"}),
    ("rename", {"columns": {"name": "who"}}),
    ("drop", {"drop": ["at"]}),
    ("select", {"select": ["n", "who", "twice"]}),
]


def test_every_step_passes_on_what_failed_before_it(world: World) -> None:
    """One frame, one row for each record that is not left out on purpose; nothing is set aside on the way."""
    (world.folder / "mine.py").write_text(DOUBLED)
    schema = "n INT, lines ARRAY<STRING>, at TIMESTAMP"
    values = [
        json.dumps({"n": n, "lines": ["a"] if n != 4 else ["a", "b"], "at": "2026-01-01T00:00:00Z"})
        for n in (0, 1, 2, 3, 3, 4, 5, 6, 7, 60)
    ]
    records: list[tuple[Any, ...]] = [
        (None, bytearray(value.encode()), "t", 0, offset, None, 0, None)
        for offset, value in enumerate([*values, "{oops", "{oops"])
    ]
    row = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, kind INT, "
    headers = "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    frame = world.spark.createDataFrame(records, row + headers).coalesce(1)
    chain = Chain(
        spark=world.spark, pipeline="p", base_dir=world.folder, streaming=False, rejecting=True,
        keep=lambda frame: frame, marking=True,
    )  # fmt: skip
    names = [(n, f"name {n}") for n in range(1, 8)]
    chain.named["names"] = world.spark.createDataFrame(names, "n INT, name STRING")
    reading = Reading(format="json", schema=schema)
    part = SourcePart(name="in", kind="topic", type=TopicSource, entry={"topic": "t"}, reading=reading)
    steps = [
        StepPart(number=number, label=f"{number} {kind}", kind=kind, step=make_step(kind, options), input=None,
                 result=None, words=frozenset())
        for number, (kind, options) in enumerate(STEPS, 1)
    ]  # fmt: skip
    result = chain.apply(steps, chain.add_source(part, frame))
    assert [name for name in result.columns if name not in HIDDEN] == ["n", "who", "twice"]
    assert chain.rejected == []
    found = result.collect()
    good = sorted((row.n, row.who, row.twice) for row in found if row[MARK] is None)
    assert good == [(1, "name 1", 2), (3, "name 3", 6), (4, "name 4", 8)]
    marked = {row[ORIGIN].offset: (row[MARK].step, row[MARK].error) for row in found if row[MARK] is not None}
    assert {offset: step for offset, (step, _) in marked.items()} == {
        2: "6 map", 8: "11 python", 9: "3 expect", 10: "source in", 11: "source in",
    }  # fmt: skip
    assert "seven" in marked[8][1]
    assert {len(row[ORIGIN].headers) for row in found} == {0}, "no list is null on its way to Python: that is slow"
    assert len(found) == 8
    # And set aside in the end, as history and tests do.
    assert {row.n for row in chain.set_aside(result).collect()} == {1, 3, 4}
    assert chain.rejected[0].select(sf.count("*")).collect()[0][0] == 5


RELEASED = re.compile(r"m\nd\no(\d+)\n")
"""What py4j sends when Python lets go of an object of the JVM: they are numbered as they are made."""


def _number_of_a_new_object(spark: SparkSession) -> int:
    made: Any = spark.sparkContext._jvm
    return int(made.java.lang.Object()._target_id.removeprefix("o"))


LATE = f"""
name: "@late"
sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}, at TIMESTAMP"}}}}
steps:
  - expect: {{rule: "amount >= 0"}}
  - deduplicate: {{keys: [id], time: at, within: 1 minute}}
  - expect: {{rule: "amount < 10"}}
sinks:
  - {{topic: "@out", key: id}}
  - {{topic: "@copy", key: id, columns: [id]}}
  - {{files: ./lake, format: parquet, partition_by: [item]}}
errors: {{dead_letter: "@dead"}}
limits: {{trigger: 100 ms}}
"""


def at(number: int, amount: float, minute: int) -> str:
    return json.dumps({"id": f"o{number}", "item": "tea", "amount": amount, "at": f"2026-01-01T10:{minute:02}:00Z"})


def test_what_cannot_be_read_has_no_time_and_still_arrives_once(world: World) -> None:
    """A watermark far beyond: late rows are dropped and counted; rejected ones, with an old time or none, are not.
    Every record counts once, and a batch is one job of Spark."""
    topic = world.topic("in")
    world.send(topic, at(1, 1, 30), "{oops", "{oops", at(2, -1, 59))
    path = world.file(LATE)
    world.run_once(path)
    # What was rejected did not move the watermark (to 10:58): this is no duplicate, and not late.
    world.send(topic, at(3, 3, 40), at(3, 3, 40))
    world.run_once(path)
    world.send(topic, at(4, 4, 1), "{late", at(5, -5, 1), at(6, 60, 41), "{oops")
    supervisor = world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == ["o1", "o3"]
    assert sorted(row["id"] for row in world.values(world.named("copy"))) == ["o1", "o3"]
    lake = pyarrow.dataset.dataset(str(world.folder / "lake"), format="parquet", partitioning="hive").to_table()
    assert sorted(map(str, lake["id"].to_pylist())) == ["o1", "o3"]
    assert lake.schema.field("at").type == pyarrow.timestamp("us", tz="UTC")
    letters = world.records(world.named("dead"))
    assert sorted((str(letter.said("step")), int(letter.said("offset") or -1)) for letter in letters) == [
        ("1 expect", 3), ("1 expect", 8), ("3 expect", 9),
        ("source orders", 1), ("source orders", 2), ("source orders", 7), ("source orders", 10),
    ]  # fmt: skip
    (query,) = status_document(supervisor)["pipelines"][0]["queries"]
    assert (query["input_rows"], query["late_rows"], query["dead_letters"]) == (5, 1, 4)
    # All of it is told to Prometheus, and so is what nobody has read yet.
    world.send(topic, "{unread")
    wait_until_moved(STATEFUL, lambda: moved("", metrics_text(status_document(supervisor))))
    assert query["event_time_max_seconds"] == 1_767_264_060, "10:41 on that day"


def test_a_batch_is_one_job_and_few_questions_to_spark(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = world.topic("in", partitions=3)
    world.send(topic, *(order(number) for number in range(9)), "{oops")
    path = world.file(LATE.replace("SCHEMA, at TIMESTAMP", "SCHEMA").replace(", at TIMESTAMP", ""
        ).replace("- deduplicate: {keys: [id], time: at, within: 1 minute}", "- filter: amount <> 3"
        ).replace("trigger: 100 ms", "max_records: 5"))  # fmt: skip
    deployment = deploy(path, bootstrap=world.bootstrap, state_dir=world.folder / "state")
    supervisor = world.supervisor(path)
    prepare_topics(deployment)
    started = start_query(deployment.plan.queries[0], deployment, world.spark, once=True)
    assert started.scans == 1
    counters = started.work.counters
    asked = Counter[int]()
    before: Any = GatewayClient.send_command
    newest = _number_of_a_new_object(world.spark)

    def counted(client: GatewayClient, command: str, *arguments: Any, **named: Any) -> Any:
        left_over = RELEASED.match(command)
        if left_over is None or int(left_over[1]) > newest:  # what other tests left behind is let go of by calls, too
            asked[counters.batches] += 1
        return before(client, command, *arguments, **named)

    gc.disable()
    try:
        monkeypatch.setattr(GatewayClient, "send_command", counted)
        assert started.stream.awaitTermination(120), supervisor
    finally:
        gc.enable()
        monkeypatch.undo()
    jobs = world.spark.sparkContext.statusTracker().getJobIdsForGroup(str(started.stream.runId))
    assert len(jobs) == counters.batches >= 2
    assert 0 < asked[1] < CALLS_MAX, asked  # of py4j, with those that let go of objects, for the second batch
    assert len(world.values(world.named("out"))) == 8
    assert len(world.records(world.named("dead"))) == 1


@pytest.mark.parametrize("parallel", [False, True])
def test_a_large_batch_is_one_pass_too_with_one_file_for_each_folder(
    world: World, monkeypatch: pytest.MonkeyPatch, parallel: bool
) -> None:
    """Rows of files and records of topics go through one shuffle; with `parallel` each task writes its own files."""
    monkeypatch.setattr(batches, "SMALL_RECORDS", 0)
    topic = world.topic("in", partitions=2)
    orders: list[dict[str, Any]] = [
        {"id": f"o{number}", "item": f"tea {number % 3}", "amount": number % 10} for number in range(8_000)
    ]
    values = [json.dumps(order) for order in orders]
    world.send(topic, *values[:4000], "{oops")
    world.send(topic, *values[4000:], partition=1)
    options = "partition_by: [item], parallel: true" if parallel else "partition_by: [item]"
    path = world.file(LATE.replace(", at TIMESTAMP", ""
        ).replace("- deduplicate: {keys: [id], time: at, within: 1 minute}", "- filter: amount <> 3"
        ).replace("partition_by: [item]", options).replace("trigger: 100 ms", "trigger: 1 s"))  # fmt: skip
    deployment = deploy(path, bootstrap=world.bootstrap, state_dir=world.folder / "state")
    prepare_topics(deployment)
    started = start_query(deployment.plan.queries[0], deployment, world.spark, once=True)
    assert started.stream.awaitTermination(120)
    jobs = world.spark.sparkContext.statusTracker().getJobIdsForGroup(str(started.stream.runId))
    assert (len(jobs), started.work.counters.batches) == (2, 1), "what is shuffled, and what is behind it"
    expected = sorted(order["id"] for order in orders if order["amount"] != 3)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == expected
    assert sorted(row["id"] for row in world.values(world.named("copy"))) == expected
    assert len(world.records(world.named("dead"))) == 1
    lake = pyarrow.dataset.dataset(str(world.folder / "lake"), format="parquet", partitioning="hive")
    assert sorted(map(str, lake.to_table()["id"].to_pylist())) == expected
    files = Counter(Path(file).parent.name for file in lake.files)
    assert set(files) == {"item=tea 0", "item=tea 1", "item=tea 2"}
    assert set(files.values()) == ({2} if parallel else {1})
    assert started.work.counters.rows["files-3"] == len(expected)


@pytest.mark.parametrize(("step", "small"), [("staged", 9), ("decided", 9), ("published", 9), ("decided", 0)])
def test_a_driver_that_dies_while_files_appear_writes_everything_once(
    world: World, step: str, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files come before the transaction ends: whatever is done of them is done when the batch comes again."""
    monkeypatch.setattr(batches, "SMALL_RECORDS", small)
    topic = world.topic("in")
    world.send(topic, at(1, 1, 1), "{oops", at(2, 2, 2))
    path = world.file(LATE.replace("errors: {", "errors: {restart: never, "))
    before: Any = Publication.__init__

    def failing(self: Publication, *arguments: Any) -> None:
        def fail(reached: str) -> None:
            if reached == step:
                raise InterruptedError(step)

        before(self, *arguments[:3], fail)

    with monkeypatch.context() as patched:
        patched.setattr(Publication, "__init__", failing)
        supervisor = world.supervisor(path)
        assert not supervisor.run()
        assert supervisor.pipelines[0].queries[0].state is State.FAILED
    assert world.records(world.named("out")) == []
    world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == ["o1", "o2"]
    assert len(world.records(world.named("dead"))) == 1
    lake = pyarrow.dataset.dataset(str(world.folder / "lake"), format="parquet", partitioning="hive").to_table()
    assert sorted(map(str, lake["id"].to_pylist())) == ["o1", "o2"]


WINDOW = f"""
name: "@windows"
sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}, at TIMESTAMP"}}}}
steps:
  - expect: {{rule: "amount >= 0"}}
  - window: {{time: at, size: 1 minute, watermark: 1 minute, aggregates: {{total: sum(amount)}}, emit: updates}}
  - expect: {{rule: "total < 10"}}
sinks: [{{topic: "@totals"}}]
errors: {{dead_letter: "@dead"}}
"""
TWO = f"""
name: "@two"
sources:
  orders: {{topic: "@in", format: json, schema: "{SCHEMA}, at TIMESTAMP"}}
  others: {{topic: "@others", format: json, schema: "{SCHEMA}, at TIMESTAMP"}}
steps:
  - sql: SELECT * FROM orders UNION ALL SELECT * FROM others
  - expect: {{rule: "amount >= 0"}}
sinks: [{{topic: "@both", key: id}}]
errors: {{dead_letter: "@dead2"}}
"""


def test_records_count_once_also_where_the_plan_reads_them_twice(world: World) -> None:
    """What is rejected before rows are made of many, or of several sources, travels beside the good rows."""
    world.send(world.topic("in"), at(1, 1, 1), "{oops", at(2, -1, 1), at(3, 3, 1), at(4, 40, 2))
    world.send(world.topic("others"), at(9, 9, 1), "{oops")
    windows, two = world.file(WINDOW, "windows.yaml"), world.file(TWO, "two.yaml")
    supervisor = world.run_once(windows, two)
    assert [row["total"] for row in world.values(world.named("totals"))] == [4.0]
    assert sorted((str(letter.said("step")), str(letter.said("offset"))) for letter in
                  world.records(world.named("dead"))) == [
        ("1 expect", "2"), ("3 expect", "None"), ("source orders", "1"),
    ]  # fmt: skip
    assert sorted(row["id"] for row in world.values(world.named("both"))) == ["o1", "o3", "o4", "o9"]
    assert len(world.records(world.named("dead2"))) == 3
    counts = [pipeline["queries"][0]["input_rows"] for pipeline in status_document(supervisor)["pipelines"]]
    assert counts == [5, 7]


def test_a_batch_that_was_committed_when_its_driver_died_has_its_state_and_watermark(world: World) -> None:
    """Spark gives it again, the sinks have it, and still it is run: what it keeps in mind is not in the sinks."""
    path = world.file(LATE)
    topic = world.topic("in")
    world.send(topic, at(1, 1, 1), at(2, 2, 5))
    world.run_once(path)
    good = [row["id"] for row in world.values(world.named("out"))]
    forget_the_last_commit(world.folder)
    world.send(topic, at(2, 2, 5), at(3, 3, 6))
    world.run_once(path)
    assert [event.what for event in world.events if event.what in ("restarts", "failed")] == []
    assert [row["id"] for row in world.values(world.named("out"))] == [*good, "o3"], "known from the batch before"


def forget_the_last_commit(folder: Path) -> None:
    """As if the driver had died between the sinks' commit and Spark's own."""
    (commits,) = folder.glob("state/**/commits")
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
