"""A mirror's flows as pipelines: each is one query, with its own state, its group in the source, its transactions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ottla.client.settings import client_settings
from ottla.pipelines.connectors.topic import TopicSource
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.keeping import FlowKeeper, Tell
from ottla.pipelines.mirror.sink import PROVENANCE, MirrorSink
from ottla.pipelines.mirror.spec import Flow, Mirror
from ottla.pipelines.parts import CheckedPipeline, PhaseParts, SinkPart, SourcePart, StepPart
from ottla.pipelines.plan import make_plan
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.spec import ONLY_PHASE, Pipeline
from ottla.pipelines.steps.filter import FilterOptions, FilterStep
from ottla.spark import loop
from ottla.spark.connections import shared_cluster

RECORDS = "records"


def flow_name(mirror: Mirror, flow: Flow) -> str:
    return f"{mirror.name}.{flow.name}"


def deploy_flow(mirror: Mirror, flow: Flow, path: Path, state_dir: Path) -> Deployment:
    """Asks both clusters for their ids: by them records are known that have come back."""
    clusters = {name: mirror.clusters[name] for name in (flow.source, flow.target)}
    spec = Pipeline(
        name=flow_name(mirror, flow), clusters=clusters, limits=mirror.limits,
        errors=mirror.errors,
    )  # fmt: skip
    secrets = Secrets(path.resolve().parent)
    empty = CheckedPipeline(path=path, spec=spec, phases=[])
    asked = Deployment(
        plan=make_plan(empty), secrets=secrets, bootstrap=clusters[flow.target].bootstrap,
        bootstrap_from="the mirror's file", folder=StateFolder(state_dir, spec.name).path,
    )  # fmt: skip
    source_id, target_id = (cluster_id(asked, name) for name in (flow.source, flow.target))
    if source_id == target_id:
        raise ConnectorProblem(f"`{flow.source}` and `{flow.target}` are one cluster ({source_id}): nothing to mirror")
    checked = replace(empty, phases=[_phase(mirror, flow, source_id, target_id)])
    return replace(asked, plan=make_plan(checked))


def cluster_id(deployment: Deployment, name: str) -> str:
    cluster = shared_cluster(client_settings(deployment.kafka(name)), patient=False)
    loop.run(cluster.metadata([]))
    return cluster.cluster_id or name


def keeper_of(mirror: Mirror, flow: Flow, deployment: Deployment, tell: Tell) -> FlowKeeper:
    source, target = deployment.kafka(flow.source), deployment.kafka(flow.target)
    back = any((other.source, other.target) == (flow.target, flow.source) for other in mirror.flows)
    return FlowKeeper(flow, sorted(mirror.clusters), source, target, tell, has_reverse=back)


def _phase(mirror: Mirror, flow: Flow, source_id: str, target_id: str) -> PhaseParts:
    names = sorted(mirror.clusters)
    pattern = naming.subscription(flow, names)
    read: dict[str, Any] = {
        "topic": f"/{pattern}/", "cluster": flow.source, "start": flow.start, "on_data_loss": flow.on_loss,
    }  # fmt: skip
    source = SourcePart(name=RECORDS, kind=TopicSource.KIND, type=TopicSource, entry=read, reading=None)
    write: dict[str, Any] = {
        "mirror": msgspec.to_builtins(flow), "cluster": flow.target, "clusters": names, "source_id": source_id,
    }  # fmt: skip
    sink = SinkPart(name=flow.target, kind=MirrorSink.KIND, type=MirrorSink, entry=write, input=None)
    steps = [_without_loops(target_id)] if flow.provenance else []
    return PhaseParts(name=ONLY_PHASE, sources={RECORDS: source}, tables={}, steps=steps, sinks=[sink])


def _without_loops(target_id: str) -> StepPart:
    """Records that have been in the target do not go there again, whatever their topic is called."""
    met = f"header.key = '{PROVENANCE}' AND header.value = CAST('{target_id}' AS BINARY)"
    condition = f"NOT coalesce(exists(headers, header -> {met}), false)"
    step = FilterStep(FilterOptions(filter=condition))
    return StepPart(number=1, label="no loops", kind="filter", step=step, input=None, result=None, words=frozenset())
