"""Pipelines that read one cluster and write another: every record once, the source's group told afterwards."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.pipelines.two_clusters import TwoClusters, asks, driver
from tests.pipelines.world import World, order

from ottla.protocol.apis import ApiKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PIPELINE = """
name: {name}
clusters:
  east: {{bootstrap: "{east}"}}
  west: {{bootstrap: "{west}"}}
sources:
  orders: {{topic: {name}.in, cluster: east, format: json, schema: "id STRING, item STRING, amount DOUBLE"}}
tables:
  items: {{topic: {name}.items, cluster: west, format: json, schema: "item STRING, kind STRING"}}
steps:
  - join: {{with: items, on: item}}
sinks:
  - {{topic: {name}.out, cluster: west, key: id}}
errors: {{dead_letter: {name}.dead, retries: 0}}
"""


@pytest.fixture
def world(spark: "SparkSession", clusters: TwoClusters, tmp_path: Path, unique: Callable[[str], str]) -> World:
    return World(spark, clusters.east, tmp_path, unique("two"))


@pytest.mark.timeout(600)
def test_a_driver_killed_between_the_target_and_the_source(world: World, clusters: TwoClusters) -> None:
    name = world.name
    clusters.topic(clusters.east, f"{name}.in", 2)
    clusters.topic(clusters.west, f"{name}.items", configs={"cleanup.policy": "compact"})
    clusters.sender(clusters.west).send(f"{name}.items", ['{"item": "tea", "kind": "drink"}'], keys=["tea"])
    world.send(f"{name}.in", *map(order, range(0, 200, 2)), "not json")
    world.send(f"{name}.in", *map(order, range(1, 200, 2)), partition=1)
    path = world.file(PIPELINE.format(name=name, east=clusters.east, west=clusters.west))

    group = f"ottla.{name}.orders"
    # The target has committed the batch and the driver never hears of it: the source was not told.
    held = clusters.gate.hold(asks(ApiKey.END_TXN, f"ottla.{name}.main"), after=True)
    with driver(world.folder, "pipeline", "run", str(path), "--once", "--state-dir", str(world.folder / "state"),
                "--master", "local[2]", "--conf", "spark.driver.memory=768m") as kill_at:  # fmt: skip
        kill_at(held)
    clusters.gate.open()
    assert world.committed(group, f"{name}.in") == {}

    supervisor = world.run_once(path)
    assert supervisor.pipelines[0].queries[0].rows == {}, "the batch was there, and is known by its note"
    assert world.committed(group, f"{name}.in") == {0: 101, 1: 100}

    world.send(f"{name}.in", *map(order, range(200, 220)))
    world.run_once(path)
    found = [record.value or b"" for record in clusters.records(clusters.west, f"{name}.out")]
    assert sorted(found) == sorted(
        f'{{"id":"o{n}","item":"tea","amount":{float(n)},"kind":"drink"}}'.encode() for n in range(220)
    )
    (letter,) = clusters.records(clusters.west, f"{name}.dead")
    assert letter.value == b"not json"
    assert world.committed(group, f"{name}.in") == {0: 121, 1: 100}
