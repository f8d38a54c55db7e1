"""The commands of `ottla pipeline` as a person uses them, one after the other, in the session's own Spark."""

import json
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.pipelines.world import SCHEMA, World, order

from ottla.cli.main import main
from ottla.pipelines.runner.deploy import deploy_active
from ottla.pipelines.runner.driver import Driver
from ottla.testing.waiting import wait_until

FILE = f"""
name: "@orders"
sources: {{orders: {{topic: "@in", format: json, schema: "{SCHEMA}"}}}}
steps:
  - expect: {{rule: "amount < 10", otherwise: dead_letter}}
sinks: [{{topic: "@out", key: id}}]
errors: {{dead_letter: "@dead"}}
tests:
  - name: small ones pass
    given: {{orders: orders.jsonl}}
    expect: out.jsonl
    dead_letters: [{{step: 1 expect, error: does not hold}}, {{step: source orders, value: "{{oops"}}]
"""


class Shell:
    """Runs commands and keeps what they printed."""

    def __init__(self, world: World, capsys: pytest.CaptureFixture[str]) -> None:
        self._world = world
        self._capsys = capsys

    def run(self, command: str, path: Path, *more: str, code: int = 0) -> str:
        options = {
            "run": ("--bootstrap-server", self._world.bootstrap, "--state-dir", str(self._world.folder / "state")),
            "test": (),
            "lint": (),
            "plan": (),
        }.get(command, ("--state-dir", str(self._world.folder / "state")))
        if command in ("replay-dead-letters", "reprocess"):
            options = (*options, "--bootstrap-server", self._world.bootstrap)
        self._capsys.readouterr()
        assert main(["pipeline", command, str(path), *options, *more]) == code
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def json(self, command: str, path: Path, *more: str, code: int = 0) -> list[Any]:
        return [json.loads(line) for line in self.run(command, path, *more, "--json", code=code).splitlines()]


@pytest.fixture
def shell(world: World, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(world, capsys)


def test_from_a_file_to_a_replay(world: World, shell: Shell) -> None:
    topic = world.topic("in")
    path = world.file(FILE)
    assert "is fine" in shell.run("lint", path)
    assert "step 1 expect" in shell.run("plan", path)

    (world.folder / "orders.jsonl").write_text(f"{order(1)}\n{order(50)}\n{{oops\n")
    (world.folder / "out.jsonl").write_text(f"{order(1)}\n")
    assert "1 passed, 0 failed" in shell.run("test", path)
    (world.folder / "out.jsonl").write_text(f"{order(2)}\n")
    said = shell.run("test", path, code=1)
    assert "1 missing, 1 unexpected" in said
    assert "0 passed, 1 failed" in said

    assert "never run" in shell.run("status", path, code=1)
    headers: list[tuple[str, bytes | None]] = [("trace", b"t1")]
    world.send(topic, order(1), order(20), order(30), "{oops", keys=["a", "b", "c", "d"], headers=headers)
    events = shell.json("run", path, "--once")
    assert [event["event"] for event in events if event["event"] != "progress"] == ["started", "done"]
    assert events[-1]["dead_letters"] == 3
    assert events[-1]["sink_rows"] == {"topic-1": 1}
    (status,) = shell.json("status", path, code=1)[0]
    assert (status["state"], status["running"], status["queries"][0]["input_rows"]) == ("done", False, 4)

    dead = {record.said("offset"): record for record in world.records(world.named("dead"))}
    assert set(dead) == {"1", "2", "3"}
    (dry,) = shell.json("replay-dead-letters", path, "--where", "step = '1 expect'", "--dry-run")
    assert [letter["source_offset"] for letter in dry["letters"]] == [1, 2]
    assert len(world.records(topic)) == 4
    chosen = f"0:{dead['2'].offset}"
    assert "1 dead letter sent back" in shell.run("replay-dead-letters", path, "--offsets", chosen)
    again = world.records(topic)[4:]
    assert [(record.key, record.value, record.headers) for record in again] == [
        (b"c", order(30).encode(), (("trace", b"t1"),))
    ]
    # What was sent is not sent again, whoever asks; the rest is.
    (sent,) = shell.json("replay-dead-letters", path, "--all")
    assert sorted(letter["source_offset"] for letter in sent["letters"]) == [1, 3]
    assert "0 dead letters sent back" in shell.run("replay-dead-letters", path, "--all")
    assert {record.value for record in world.records(topic)[5:]} == {order(20).encode(), b"{oops"}
    assert "Columns: partition, offset" in shell.run("replay-dead-letters", path, "--where", "nope = 1", code=1)
    assert "--offsets wants" in shell.run("replay-dead-letters", path, "--offsets", "12", code=1)


def test_a_new_version_is_made_beside_the_live_one_and_switched_to(world: World, shell: Shell) -> None:
    topic = world.topic("in")
    path = world.file(FILE)
    world.send(topic, order(1), order(2))
    shell.run("run", path, "--once")
    assert "there is no version v2" in shell.run("switch", path, "--version", "v2", code=1)
    mended = path.read_text().replace("amount < 10", "amount < 2")
    path.write_text(mended)
    assert "has caught up" in shell.run("reprocess", path, "--version", "v2")
    assert [row["id"] for row in world.values(world.named("out.v2"))] == ["o1"]

    said = shell.run("switch", path, "--version", "v2")
    assert f"topic-1: {world.named('out')} -> {world.named('out.v2')}" in said
    assert "is the live one already" in shell.run("switch", path, "--version", "v2", code=1)
    world.send(topic, order(0))
    shell.run("run", path, "--once")
    assert [row["id"] for row in world.values(world.named("out.v2"))] == ["o1", "o0"]
    assert [row["id"] for row in world.values(world.named("out"))] == ["o1", "o2"]
    (status,) = shell.json("status", path, code=1)[0]
    assert (status["active_version"], status["version"], list(status["versions"])) == ("v2", "v2", ["v2"])


def test_a_running_driver_goes_on_with_the_version_that_is_switched_to(world: World, shell: Shell) -> None:
    """What the old version had not written yet is the new one's, and nothing comes twice."""
    topic = world.topic("in")
    path = world.file(FILE.replace("errors:", "limits: {trigger: 100 ms}\nerrors:"))
    world.send(topic, order(1))
    live = deploy_active(path, bootstrap=world.bootstrap, state_dir=world.folder / "state")
    driver = Driver([live], once=False)
    running = threading.Thread(
        target=lambda: driver.run(lambda: nullcontext(world.spark), world.events.append, lambda status: None)
    )
    running.start()

    def ids(name: str) -> list[str]:
        return [row["id"] for row in world.values(world.named(name))]

    def written(name: str, expected: list[str]) -> None:
        wait_until(lambda: ids(name) == expected or not running.is_alive(), f"{expected} in {name}", seconds=120)
        assert running.is_alive(), world.events

    try:
        wait_until(lambda: [event for event in world.events if event.what == "started"], "it runs", seconds=120)
        written("out", ["o1"])
        assert "has caught up" in shell.run("reprocess", path, "--version", "v2")
        assert ids("out.v2") == ["o1"]
        assert "the running driver goes on with it" in shell.run("switch", path, "--version", "v2")
        wait_until(lambda: [event for event in world.events if event.what == "switched"], "it switches", seconds=60)
        world.send(topic, order(2))
        written("out.v2", ["o1", "o2"])
        (status,) = shell.json("status", path)[0]
        assert (status["running"], status["version"], status["active_version"]) == (True, "v2", "v2")
        shell.run("switch", path, "--version", "first")
        written("out", ["o1", "o2"])  # the first version catches up from its own checkpoint
    finally:
        driver.stop()
        running.join(60)
    assert ids("out.v2") == ["o1", "o2"]


def test_mistakes_on_the_way_read_well(world: World, shell: Shell) -> None:
    path = world.file('{name: "@x", sources: {a: {topic: "@a"}}, sinks: [{topic: "@out"}]}')
    assert "there are no tests in these files" in shell.run("test", path, code=1)
    assert "has no dead letters" in shell.run("replay-dead-letters", path, "--all", code=1)
    assert "does not run" in shell.run("stop", path, code=1)
    assert f"there is no topic `{world.named('a')}` to read" in shell.run("run", path, "--once", code=1)
    with pytest.raises(SystemExit):
        main(["pipeline", "replay-dead-letters", str(path)])
    with pytest.raises(SystemExit):
        main(["pipeline", "run", str(path), "--version", "v2"])
    assert main(["pipeline", "rnu"]) == 1
    assert main(["pipeline"]) == 0
