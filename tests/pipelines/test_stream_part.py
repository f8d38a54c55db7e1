"""Steps inside the streaming plan: rejected rows travel with the good ones; state lives on over restarts."""

import pytest
from tests.pipelines.world import SCHEMA, World, order

from ottla.pipelines.runner.deploy import deploy
from ottla.pipelines.runner.queries import streaming_frame

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
    assert progress.state_rows > 0

    # The state is the checkpoint's: what was seen before a restart is a duplicate after it.
    world.send(topic, order(1), order(5))
    world.run_once(path)
    assert sorted(row["id"] for row in world.values(world.named("out"))) == ["o1", "o4", "o5"]


def test_no_plan_that_spark_can_show_holds_a_secret(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_SECRET", "nobody-may-see-this")
    settings = "security.protocol: SASL_PLAINTEXT, sasl.mechanism: PLAIN, sasl.username: me"
    path = world.file(f"{FILE}client: {{{settings}, sasl.password: '${{env:OTTLA_TEST_SECRET}}'}}\n")
    deployment = deploy(path, bootstrap=world.bootstrap, state_dir=world.folder / "state")
    (query,) = deployment.plan.queries
    assert deployment.kafka["sasl.password"] == "nobody-may-see-this"
    sources = {name: part.open(deployment.secrets) for name, part in query.sources.items()}
    shown = streaming_frame(query, deployment, world.spark, sources)._jdf.queryExecution().toString()
    assert "kafka.bootstrap.servers" in shown
    assert "nobody-may-see-this" not in shown
