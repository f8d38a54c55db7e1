"""Steps inside the streaming plan: rejected rows travel with the good ones; state lives on over restarts."""

import json
import sqlite3
import threading
from typing import Any

import pytest
from tests.pipelines.world import SCHEMA, World, order

from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.queries import streaming_frame
from ottla.pipelines.runner.status import status_document
from ottla.testing.waiting import wait_until

FILE = f"""
name: "@unique"
sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}", keep: {{at: timestamp}}}}}}
steps:
  - expect: {{rule: "amount >= 0"}}
  - deduplicate: {{keys: [id], time: at, within: 1 hour}}
  - expect: {{rule: "amount < 10"}}
sinks: [{{topic: "@out", key: id}}]
errors: {{dead_letter: "@dead"}}
"""


def test_rejects_before_and_after_a_stateful_step(world: World) -> None:
    topic = world.topic("in")
    path = world.file(FILE)
    world.send(topic, order(1), order(1), "{oops", order(2, -5), order(3, 50), order(4))
    supervisor = world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == ["o1", "o4"]
    letters = world.records(world.named("dead"))
    assert sorted((str(letter.said("step")), str(letter.said("offset"))) for letter in letters) == [
        ("1 expect", "3"), ("3 expect", "4"), ("source orders", "2"),
    ]  # fmt: skip
    assert {letter.value for letter in letters} == {b"{oops", order(2, -5).encode(), order(3, 50).encode()}
    progress = supervisor.progress(supervisor.pipelines[0].queries[0])
    assert progress.state.rows > 0

    # The state is the checkpoint's: what was seen before a restart is a duplicate after it.
    world.send(topic, order(1), order(5))
    world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == ["o1", "o4", "o5"]


FORGETFUL = """
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Forgetful(StatefulProcessor):
    "Counts what came within an hour, and within a millisecond, of the clock; and is woken by a timer."

    def init(self, handle):
        self.handle = handle
        self.long = handle.getValueState("long", "n BIGINT", 3_600_000)
        self.short = handle.getValueState("short", "n BIGINT", 1)

    def handleInputRows(self, key, rows, timer_values):
        count = sum(1 for _ in rows)
        for state, name in ((self.long, "long"), (self.short, "short")):
            total = (state.get()[0] if state.exists() else 0) + count
            state.update((total,))
            yield Row(what=name, n=total)
        self.handle.registerTimer(timer_values.getCurrentProcessingTimeInMs() + 1)

    def handleExpiredTimer(self, key, timer_values, expired):
        yield Row(what="timer", n=0)

    def close(self):
        pass
"""


def test_timers_and_expiry_by_the_clock_and_a_run_of_such_a_step_that_ends(world: World) -> None:
    topic = world.topic("in")
    (world.folder / "forgetful.py").write_text(FORGETFUL)
    path = world.file(
        f"""
        name: "@clock"
        sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}"}}}}
        steps:
          - {{stateful: "forgetful:Forgetful", group_by: [item], schema: "what STRING, n BIGINT", timers: processing}}
        sinks: [{{topic: "@out"}}]
        """
    )
    world.send(topic, order(1), order(2))
    world.run_once(path)
    assert world.values(world.named("out")) == [{"what": "long", "n": 2}, {"what": "short", "n": 2}]
    world.send(topic, order(3))
    world.run_once(path)
    second = sorted((row["what"], row["n"]) for row in world.values(world.named("out"))[2:])
    assert second == [("long", 3), ("short", 1), ("timer", 0)]


TABLES = f"""
name: "@tables"
sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}", keep: {{at: timestamp}}}}}}
tables:
  prices: {{topic: "@prices", format: json, schema: "item STRING NOT NULL, price DOUBLE"}}
  rates: {{files: ./rates, format: json, schema: "item STRING, rate DOUBLE"}}
  names: {{sqlite: ./names.db, table: names}}
steps:
  - join: {{with: prices, on: item, type: left}}
  - join: {{with: rates, on: item, type: left}}
  - join: {{with: names, on: item, type: left}}
  - deduplicate: {{keys: [id], time: at, within: 1 hour}}
sinks: [{{topic: "@out", key: id, columns: [id, price, rate, name]}}]
limits: {{trigger: 100 ms}}
"""


def test_tables_in_the_stream_are_read_anew_for_every_batch_and_bad_records_of_them_left_out(world: World) -> None:
    """A running query sees what has changed in a topic, in a folder and in a database."""
    topic, prices = world.topic("in"), world.topic("prices")
    (world.folder / "rates").mkdir()
    database = sqlite3.connect(world.folder / "names.db", isolation_level=None)
    database.execute("CREATE TABLE names (item TEXT, name TEXT)")

    def change(number: int) -> None:
        world.send(prices, json.dumps({"item": "tea", "price": number}), keys=["tea"])
        (world.folder / "rates" / f"{number - 1}.json").unlink(missing_ok=True)
        (world.folder / "rates" / f"{number}.json").write_text(json.dumps({"item": "tea", "rate": number}) + "\n")
        database.execute("DELETE FROM names")
        database.execute("INSERT INTO names VALUES ('tea', ?)", [f"name {number}"])

    def come_out() -> list[Any]:
        return world.values(world.named("out"))

    change(1)
    world.send(prices, "{oops", '{"price": 3}', keys=["bad", "nameless"])
    world.send(topic, order(1))
    supervisor = world.supervisor(world.file(TABLES), once=False)

    def unread() -> dict[str, int]:
        found: dict[str, int] = status_document(supervisor)["pipelines"][0]["queries"][0]["unread_in_tables"]
        return found

    running = threading.Thread(target=supervisor.run)
    running.start()
    try:
        wait_until(lambda: len(come_out()) == 1 or not running.is_alive(), "the first batch", seconds=120)
        # The tables are looked at behind the batch, and not while they change.
        wait_until(lambda: len(unread()) == 3 or not running.is_alive(), "a look at the tables", seconds=120)
        change(2)
        world.send(topic, order(2))
        wait_until(lambda: len(come_out()) == 2 or not running.is_alive(), "the second batch", seconds=120)
    finally:
        supervisor.stop()
        running.join(60)
        database.close()
    assert come_out() == [
        {"id": f"o{number}", "price": float(number), "rate": float(number), "name": f"name {number}"}
        for number in (1, 2)
    ], world.events
    assert unread() == {"prices": 2, "rates": 0, "names": 0}
    (warning,) = [event for event in world.events if event.what == "warning"]
    assert "2 records of the table prices cannot be read and are left out" in warning.message
    assert f"topic {prices}, partition 0, offset 1: malformed JSON" in warning.message


def test_no_plan_that_spark_can_show_holds_a_secret(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_SECRET", "nobody-may-see-this")
    settings = "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: me"
    path = world.file(f"{FILE}client: {{{settings}, sasl.password: '${{env:OTTLA_TEST_SECRET}}'}}\n")
    deployment = deploy(path, bootstrap=world.bootstrap, state_dir=world.folder / "state")
    (query,) = deployment.plan.queries
    assert deployment.kafka(None)["sasl.password"] == "nobody-may-see-this"
    sources = {name: part.open(deployment.secrets) for name, part in query.sources.items()}
    shown = streaming_frame(query, deployment, world.spark, sources)._jdf.queryExecution().toString()
    assert "kafka.bootstrap.servers" in shown
    assert "nobody-may-see-this" not in shown
