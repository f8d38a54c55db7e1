"""Pipelines on real Spark and a real broker: what comes out, where bad records go, what a restart does."""

import json

import pyarrow.dataset
from tests.pipelines.world import SCHEMA, World, order

from ottla.pipelines.runner.status import status_document
from ottla.pipelines.runner.supervisor import State

ISSUE = f"""
name: "@issue"
sources: {{orders: {{topic: "@orders", format: json, schema: "{SCHEMA}", start: earliest}}}}
steps:
  - sql: SELECT *, amount * 1.2 AS gross FROM orders WHERE amount > 0
  - python: enrich:add_country
  - expect: {{rule: "gross < 100", otherwise: dead_letter}}
sinks:
  - {{topic: "@enriched", key: id, format: json, delivery: exactly_once}}
  - {{files: ./lake, format: parquet, partition_by: [item]}}
errors: {{retries: 3, dead_letter: "@dead", restart: always}}
limits: {{trigger: 1 second, max_records: 50000}}
"""
ENRICH = """
from ottla.pipelines.steps.declare import adds


@adds("country STRING")
def add_country(row):
    if row["id"] == "o3":
        raise ValueError("no country for o3")
    return {**row, "country": "NL"}
"""


def test_the_example_of_the_issue(world: World) -> None:
    """Read, SQL, Python, a rule; to a topic and to Parquet; each kind of bad record in the dead letters; a replay."""
    orders = world.topic("orders", partitions=2)
    headers: list[tuple[str, bytes | None]] = [("trace", b"t1")]
    world.send(orders, *(order(number) for number in range(5)), keys=[f"k{number}" for number in range(5)])
    world.send(orders, "{oops", order(7, 1e6), order(8), keys=["bad", "big", "k8"], partition=1, headers=headers)
    (world.folder / "enrich.py").write_text(ENRICH)
    path = world.file(ISSUE)
    supervisor = world.run_once(path)

    values = world.values(world.named("enriched"))
    assert sorted(row["id"] for row in values) == ["o1", "o2", "o4", "o8"]
    assert all(row["country"] == "NL" and abs(row["gross"] - row["amount"] * 1.2) < 1e-9 for row in values)
    assert {record.key for record in world.records(world.named("enriched"))} == {b"o1", b"o2", b"o4", b"o8"}
    lake = pyarrow.dataset.dataset(str(world.folder / "lake"), format="parquet", partitioning="hive").to_table()
    assert sorted(map(str, lake["id"].to_pylist())) == ["o1", "o2", "o4", "o8"]

    letters = {str(record.said("step")): record for record in world.records(world.named("dead"))}
    assert sorted(letters) == ["2 python", "3 expect", "source orders"]
    unread = letters["source orders"]
    assert (unread.key, unread.value, dict(unread.headers)["trace"]) == (b"bad", b"{oops", b"t1")
    assert [unread.said(name) for name in ("topic", "partition", "offset", "source")] == [orders, "1", "0", "orders"]
    assert "malformed JSON" in (unread.said("message") or "")
    assert int(unread.said("timestamp") or 0) > 1_600_000_000_000
    failed = letters["2 python"]
    assert (failed.value, failed.said("offset")) == (order(3).encode(), "3")
    assert "no country for o3" in (failed.said("message") or "")
    assert json.loads(letters["3 expect"].said("row") or "{}")["amount"] == 1e6

    # Its progress is a consumer group's, with no lag left; and it is counted.
    group = status_document(supervisor)["pipelines"][0]["queries"][0]
    assert world.committed(group["group"], orders) == {0: 5, 1: 3}
    assert (group["dead_letters"], group["sink_rows"], group["input_rows"]) == (3, {"topic-1": 4, "files-2": 4}, 8)

    # A second run has nothing to do, a third finds what is new: nothing comes twice.
    world.run_once(path)
    world.send(orders, order(9))
    world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("enriched"))) == ["o1", "o2", "o4", "o8", "o9"]
    assert len(world.records(world.named("dead"))) == 3


def test_without_dead_letters_a_bad_record_stops_the_pipeline_and_says_what_to_do(world: World) -> None:
    orders = world.topic("orders")
    world.send(orders, order(1), "{oops")
    path = world.file(
        f"""
        name: "@strict"
        sources: {{orders: {{topic: "@orders", format: json, schema: "{SCHEMA}"}}}}
        sinks: [{{topic: "@out"}}]
        errors: {{restart: always}}
        """
    )
    supervisor = world.supervisor(path)
    assert not supervisor.run()
    (query,) = supervisor.pipelines[0].queries
    assert query.state is State.FAILED
    assert query.restarts == 0
    message = query.last_error or ""
    assert f"source orders, topic {orders}, partition 0, offset 1: malformed JSON" in message
    assert "dead_letter" in message
    assert world.records(world.named("out")) == []


def test_several_pipelines_and_queries_share_a_driver(world: World) -> None:
    orders = world.topic("orders")
    world.send(orders, *(order(number) for number in range(6)))
    one = world.file(
        f"""
        name: "@one"
        sources: {{orders: {{topic: "@orders", format: json, schema: "{SCHEMA}", keep: {{at: timestamp, n: offset}}}}}}
        steps:
          - {{filter: "amount > 1", as: some}}
          - {{filter: "amount > 3"}}
        sinks: [{{topic: "@few", key: id, headers: {{kind: item}}, columns: [id, n]}}, {{topic: "@some", from: some}}]
        """,
        "one.yaml",
    )
    two = world.file(
        """
        name: "@two"
        sources: {orders: {topic: "@orders"}}
        sinks: [{topic: "@raw", format: raw}]
        """,
        "two.yaml",
    )
    missing = world.file('{name: "@three", sources: {a: {topic: "@nowhere"}}, sinks: [{topic: "@x"}]}', "three.yaml")
    supervisor = world.supervisor(one, two, missing)
    assert not supervisor.run()
    states = {pipeline.name: pipeline.state for pipeline in supervisor.pipelines}
    assert states == {
        world.named("one"): State.DONE, world.named("two"): State.DONE, world.named("three"): State.FAILED,
    }  # fmt: skip
    assert f"there is no topic `{world.named('nowhere')}` to read" in str(supervisor.pipelines[2].queries[0].last_error)
    assert sorted(row["id"] for row in world.values(world.named("some"))) == ["o2", "o3", "o4", "o5"]
    few = world.records(world.named("few"))
    assert [json.loads(record.value or b"") for record in few] == [{"id": "o4", "n": 4}, {"id": "o5", "n": 5}]
    assert [record.headers for record in few] == [(("kind", b"tea"),)] * 2
    assert [record.value for record in world.records(world.named("raw"))] == [order(n).encode() for n in range(6)]


def test_a_compacted_topic_is_a_table_to_join_with(world: World) -> None:
    orders, customers = world.topic("orders"), world.topic("customers")
    world.send(customers, '{"name": "old"}', '{"name": "new"}', '{"name": "gone"}', None, keys=["o1", "o1", "o2", "o2"])
    world.send(orders, order(1), order(2))
    path = world.file(
        f"""
        name: "@joined"
        sources: {{orders: {{topic: "@orders", format: json, schema: "{SCHEMA}"}}}}
        tables: {{customers: {{topic: "@customers", format: json, schema: "name STRING", keep: {{customer: key}}}}}}
        steps:
          - sql: SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.id = c.customer
        sinks: [{{topic: "@out", key: id}}]
        """
    )
    world.run_once(path)
    assert sorted(world.values(world.named("out")), key=str) == [{"id": "o1", "name": "new"}, {"id": "o2"}]


def test_the_same_file_over_history_and_into_a_version(world: World) -> None:
    from ottla.pipelines.runner.deploy import deploy
    from ottla.pipelines.runner.history import run_history

    orders = world.topic("orders")
    world.send(orders, order(1), "{oops", order(2))
    path = world.file(
        f"""
        name: "@kappa"
        sources: {{orders: {{topic: "@orders", format: json, schema: "{SCHEMA}", start: latest}}}}
        sinks: [{{topic: "@out", key: id}}]
        errors: {{dead_letter: "@dead"}}
        """
    )
    deployment = deploy(path, bootstrap=world.bootstrap, state_dir=world.folder / "state", version="b1")
    (counted,) = run_history(deployment, world.spark).values()
    assert (counted.rows, counted.dead_letters) == ({"topic-1": 2}, 1)
    assert [row["id"] for row in world.values(world.named("out.b1"))] == ["o1", "o2"]

    world.run_once(path, version="v2")
    world.run_once(path, version="v2")
    assert [row["id"] for row in world.values(world.named("out.v2"))] == ["o1", "o2"]
    assert len(world.records(world.named("dead.v2"))) == 1


def test_a_phase_that_runs_once_finds_all_that_the_one_before_it_wrote(world: World) -> None:
    world.send(world.topic("in"), *(order(number) for number in range(5)))
    path = world.file(
        f"""
        name: "@phases"
        phases:
          - name: clean
            sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}"}}}}
            steps: [{{filter: "amount > 2"}}]
            sinks: [{{topic: "@clean", key: id}}]
          - name: copy
            sources: {{clean: {{topic: "@clean", format: json, schema: "{SCHEMA}"}}}}
            sinks: [{{topic: "@copy", key: id}}]
        """
    )
    world.run_once(path)
    assert [event.query for event in world.events if event.what == "started"] == ["clean", "copy"]
    assert [row["id"] for row in world.values(world.named("copy"))] == ["o3", "o4"]
