"""From a file to a deployment: read and checked once, and written by sinks that are known by what they offer."""

import ast
import dataclasses
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from pyspark.sql import Column, DataFrame
from tests.unit.pipelines.samples import checked, small

from ottla.pipelines import lint, runner
from ottla.pipelines.connectors.base import Batch, Sink, Written
from ottla.pipelines.connectors.transactional import StagedSink, TopicTarget, is_transactional, transactional
from ottla.pipelines.plan import make_plan
from ottla.pipelines.runner.brokers import places_with_topics
from ottla.pipelines.runner.deploy import deploy, deploy_active
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.runner.topics import written_topics

FILE = """
name: orders
sources: {orders: {topic: in}}
sinks: [{topic: out}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "orders.yaml"
    found.write_text(FILE)
    return found


@pytest.mark.parametrize("version", [None, "v2"])
@pytest.mark.parametrize("active", [True, False])
def test_a_file_is_read_and_checked_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, *, active: bool
) -> None:
    calls = []
    for name in ("load", "find_problems"):
        real = getattr(lint, name)

        def counted(*arguments: Any, real: Any = real, name: str = name) -> Any:
            calls.append(name)
            return real(*arguments)

        monkeypatch.setattr(lint, name, counted)
    if active:
        StateFolder(path.parent, "orders").write("active.json", {"version": version})
        deployment = deploy_active(path, bootstrap=None, state_dir=path.parent)
    else:
        deployment = deploy(path, bootstrap=None, state_dir=path.parent, version=version)
    assert calls == ["load", "find_problems"]
    assert deployment.version == version
    assert written_topics(deployment) == ["out" if version is None else "out.v2"]


class MirrorSink:
    """Somebody else's, which writes a topic too."""

    KIND: ClassVar[str] = "mirror"
    Options: ClassVar[type[Any]] = msgspec.defstruct("Options", ["topic"])

    def __init__(self, options: Any) -> None:
        self.options = options

    def problems(self) -> list[str]:
        return []

    def target(self) -> TopicTarget:
        return TopicTarget(topic=self.options.topic, compression="none", exactly_once=True, in_plan=True)

    def columns(self, frame: DataFrame, base_dir: Path) -> list[Column]:
        raise NotImplementedError

    def write(self, frame: DataFrame, batch: Batch) -> Written:
        raise NotImplementedError


def test_a_sink_shares_the_transaction_by_what_it_offers() -> None:
    values = small(tests=[], sinks=[{"files": "lake", "format": "parquet"}])
    values["errors"].pop("dead_letter")
    plan = make_plan(checked(values))
    (query,) = plan.queries
    assert not query.writes_topics
    (files,) = query.sinks
    assert issubclass(files.type, StagedSink)
    mirror = dataclasses.replace(files, kind="mirror", type=MirrorSink, entry={"topic": "there"})
    assert dataclasses.replace(query, sinks=[files, mirror]).writes_topics
    (phase,) = plan.checked.phases
    with_mirror = dataclasses.replace(plan.checked, phases=[dataclasses.replace(phase, sinks=[files, mirror])])
    assert list(places_with_topics(with_mirror)) == ["sources.orders", "sinks[1]"]
    sinks: list[tuple[str, Sink]] = [("files", files.type(None)), ("mirror", MirrorSink(None))]
    assert [name for name, _ in transactional(sinks)] == ["mirror"]
    assert not is_transactional(files.type)


def test_the_runner_knows_no_sink_by_its_class() -> None:
    (folder,) = runner.__path__
    known = {
        alias.name
        for path in Path(folder).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ottla.pipelines.connectors")
        for alias in node.names
        if alias.name.endswith("Sink")
    }
    assert known == {"CopyingSink", "Sink", "StagedSink", "TransactionalSink"}, "protocols all of them"
