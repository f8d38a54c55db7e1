"""A mirror's flows as pipelines: each is one query, with its own state, its group in the source, its transactions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ottla.client.settings import client_settings
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.mirror import naming
from ottla.pipelines.mirror.keeping import PAUSED, FlowKeeper, Tell
from ottla.pipelines.mirror.sink import PROVENANCE, MirrorSink
from ottla.pipelines.mirror.spec import Flow, Mirror
from ottla.pipelines.mirror.standby import FlowSource, StandbySink, client_of, positions_group
from ottla.pipelines.parts import CheckedPipeline, PhaseParts, SinkPart, SourcePart, StepPart
from ottla.pipelines.plan import make_plan
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.runner.state_folder import StateFolder
from ottla.pipelines.secrets import Secrets
from ottla.pipelines.spec import ONLY_PHASE, Pipeline
from ottla.pipelines.steps.filter import FilterOptions, FilterStep
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.reading.flow_option import CopyTo, FlowOption

RECORDS = "records"
RUNS = "the mirror runs: stop it first (`ottla pipeline stop {}`, or Ctrl-C there)"
IDS = "clusters.json"
"""In a flow's folder: the ids of its clusters, for when one of them does not answer any more."""


def flow_name(mirror: Mirror, flow: Flow) -> str:
    return f"{mirror.name}.{flow.name}"


def deploy_flow(mirror: Mirror, flow: Flow, path: Path, state_dir: Path) -> Deployment:
    """Asks both clusters for their ids: by them records are known that have come back."""
    asked = connected(mirror, flow, path, state_dir)
    source_id, target_id = (cluster_id(asked, name) for name in (flow.source, flow.target))
    if source_id == target_id:
        raise ConnectorProblem(f"`{flow.source}` and `{flow.target}` are one cluster ({source_id}): nothing to mirror")
    folder = state_folder(mirror, flow, state_dir)
    folder.write(IDS, {"source": source_id, "target": target_id})
    phase = _phase(mirror, flow, source_id, target_id, folder)
    return replace(asked, plan=make_plan(replace(asked.checked, phases=[phase])))


def connected(mirror: Mirror, flow: Flow, path: Path, state_dir: Path) -> Deployment:
    """What is needed to speak to both clusters, without asking either."""
    clusters = {name: mirror.clusters[name] for name in (flow.source, flow.target)}
    limits = flow.limits or mirror.limits
    spec = Pipeline(name=flow_name(mirror, flow), clusters=clusters, limits=limits, errors=mirror.errors)
    return Deployment(
        plan=make_plan(CheckedPipeline(path=path, spec=spec, phases=[])), secrets=Secrets(path.resolve().parent),
        bootstrap=clusters[flow.target].bootstrap, bootstrap_from="the mirror's file",
        folder=state_folder(mirror, flow, state_dir).path,
    )  # fmt: skip


def state_folder(mirror: Mirror, flow: Flow, state_dir: Path) -> StateFolder:
    return StateFolder(state_dir, flow_name(mirror, flow))


def set_paused(mirror: Mirror, flow: Flow, state_dir: Path, *, paused: bool) -> None:
    """For a flow that runs now, and for one that is started later."""
    mark = state_folder(mirror, flow, state_dir).path / PAUSED
    if not paused:
        mark.unlink(missing_ok=True)
        return
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()


def is_paused(mirror: Mirror, flow: Flow, state_dir: Path) -> bool:
    return (state_folder(mirror, flow, state_dir).path / PAUSED).exists()


def group_of(mirror: Mirror, flow: Flow) -> str:
    """The group of the source that shows the flow's lag, as its plan names it."""
    return f"ottla.{flow_name(mirror, flow)}.{RECORDS}"


def cluster_id(deployment: Deployment, name: str) -> str:
    cluster = shared_cluster(client_settings(deployment.kafka(name)), patient=False)
    loop.run(cluster.metadata([]))
    return cluster.cluster_id or name


def keeper_of(mirror: Mirror, flow: Flow, deployment: Deployment, tell: Tell) -> FlowKeeper:
    source, target = deployment.kafka(flow.source), deployment.kafka(flow.target)
    back = any((other.source, other.target) == (flow.target, flow.source) for other in mirror.flows)
    folder = StateFolder(deployment.folder.parent, deployment.folder.name)
    return FlowKeeper(flow, sorted(mirror.clusters), source, target, tell, has_reverse=back, folder=folder)


def _phase(mirror: Mirror, flow: Flow, source_id: str, target_id: str, folder: StateFolder) -> PhaseParts:
    names = sorted(mirror.clusters)
    pattern = naming.subscription(flow, names)
    clients = {name: client_of(mirror.clusters[name].bootstrap, mirror.clusters[name].client) for name in names}
    positions = positions_group(group_of(mirror, flow))
    copy_to = CopyTo(
        target=clients[flow.target], source_id=source_id, positions=positions,
        replication_factor=flow.replication_factor, clear_on_loss=flow.on_loss == "continue",
        own_settings=flow.own_settings,
    )  # fmt: skip
    option = FlowOption(
        paused=str(folder.path / PAUSED), bytes_per_second=flow.bytes_per_second,
        copy_to=copy_to if flow.is_standby else None,
    )  # fmt: skip
    read: dict[str, Any] = {
        "topic": f"/{pattern}/", "cluster": flow.source, "start": flow.start, "on_data_loss": flow.on_loss,
        "flow": msgspec.to_builtins(option),
    }  # fmt: skip
    source = SourcePart(name=RECORDS, kind=FlowSource.KIND, type=FlowSource, entry=read, reading=None)
    if flow.is_standby:
        noted: dict[str, Any] = {
            "standby": flow.target, "source": clients[flow.source], "target": clients[flow.target],
            "group": group_of(mirror, flow), "positions": positions,
        }  # fmt: skip
        kept = SinkPart(name=flow.target, kind=StandbySink.KIND, type=StandbySink, entry=noted, input=None)
        return PhaseParts(name=ONLY_PHASE, sources={RECORDS: source}, tables={}, steps=[], sinks=[kept])
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
