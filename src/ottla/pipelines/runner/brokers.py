"""Do the brokers that pipelines need answer? Asked before Spark starts, which takes long and says it badly."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ottla.client.errors import ClientError, InvalidSetting
from ottla.client.presence import Absent, absent_brokers
from ottla.client.security import Security, parse_security
from ottla.pipelines.connectors.transactional import is_transactional
from ottla.pipelines.errors import ConnectorProblem
from ottla.pipelines.parts import CheckedPipeline, PhaseParts
from ottla.pipelines.plan import TOPIC
from ottla.pipelines.runner.deployment import Deployment
from ottla.pipelines.spec import ONLY_PHASE

PLACES_SHOWN_MAX = 6

Ask = Callable[[str, Security], Sequence[Absent]]


def check_brokers(deployments: Iterable[Deployment], ask: Ask = absent_brokers) -> None:
    """ConnectorProblem says who needs brokers that do not answer, at which addresses, and what to do."""
    answers: dict[tuple[str, Security], Sequence[Absent]] = {}
    wrong = []
    for deployment in deployments:
        by_cluster: dict[str | None, list[str]] = {}
        for cluster, place in clusters_of_places(deployment.checked):
            by_cluster.setdefault(cluster, []).append(place)
        for cluster, places in by_cluster.items():
            try:
                asked = (deployment.brokers(cluster), parse_security(deployment.client(cluster)))
                if asked not in answers:
                    answers[asked] = ask(*asked)
            except (InvalidSetting, ClientError) as error:
                wrong.append(f"{deployment.checked.path}: {error}")
                continue
            if absent := answers[asked]:
                wrong.append(_in_words(deployment, cluster, places, absent))
    if wrong:
        raise ConnectorProblem("\n".join(wrong))


def places_with_topics(checked: CheckedPipeline) -> Iterator[str]:
    """The parts of the file that brokers are for, such as `sources.orders`."""
    yield from (place for _, place in clusters_of_places(checked))


def clusters_of_places(checked: CheckedPipeline) -> Iterator[tuple[str | None, str]]:
    """With the cluster that each of them needs; None is the pipeline's own."""
    for number, phase in enumerate(checked.phases):
        before = "" if phase.name == ONLY_PHASE and not checked.spec.phases else f"phases[{number}]."
        yield from ((cluster, before + place) for cluster, place in _of_phase(phase))
    errors = checked.spec.errors
    if errors.dead_letter is not None:
        sinks = [sink.cluster for sink in checked.sinks() if is_transactional(sink.type)]
        yield sinks[0] if sinks else errors.dead_letter_cluster, "errors.dead_letter"


def _of_phase(phase: PhaseParts) -> Iterator[tuple[str | None, str]]:
    for kind, parts in (("sources", phase.sources), ("tables", phase.tables)):
        yield from ((part.cluster, f"{kind}.{name}") for name, part in parts.items() if part.kind == TOPIC)
    for number, sink in enumerate(phase.sinks):
        if is_transactional(sink.type):
            yield sink.cluster, f"sinks[{number}]"


def _in_words(deployment: Deployment, cluster: str | None, places: Sequence[str], absent: Sequence[Absent]) -> str:
    shown = ", ".join(places[:PLACES_SHOWN_MAX])
    if len(places) > PLACES_SHOWN_MAX:
        shown += f" and {len(places) - PLACES_SHOWN_MAX} more"
    where = f"at {deployment.brokers(cluster)} ({deployment.brokers_from(cluster)})"
    advice = "start one with `ottla up`, or correct its `bootstrap`"
    if cluster is None:
        named = "--bootstrap-server, `bootstrap` in the file or $OTTLA_BOOTSTRAP"
        advice = f"start one with `ottla up`, or name another with {named}"
    lines = [
        f"{deployment.checked.path}: no broker answers {where}, and {shown} cannot do without",
        *(f"  {each}" for each in absent),
        f"  {advice}",
    ]
    return "\n".join(lines)
