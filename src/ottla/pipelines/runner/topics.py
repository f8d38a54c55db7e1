"""Topics that a pipeline needs: those it reads must be there, those it writes are made if they are not."""

from collections.abc import Mapping

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError, ErrorCode
from ottla.pipelines.connectors.topic import TopicSource
from ottla.pipelines.connectors.transactional import TransactionalSink
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.plan import TOPIC
from ottla.pipelines.runner.deployment import Deployment
from ottla.spark import loop
from ottla.spark.connections import shared_cluster

WAIT_SECONDS_MAX = 10.0


def prepare_topics(deployment: Deployment) -> list[str]:
    """The topics that were made. FatalFailure if a source's topic is missing."""
    made: list[str] = []
    for cluster in used_clusters(deployment):
        settings = client_settings(deployment.kafka(cluster))
        # Whoever waits for this does nothing else meanwhile; it is asked again after a pause.
        patient = settings._replace(total_timeout_s=min(settings.total_timeout_s, WAIT_SECONDS_MAX))
        made += loop.run(_prepare(shared_cluster(patient), deployment, cluster))
    return made


def used_clusters(deployment: Deployment) -> list[str | None]:
    """Those whose topics are read or written; the pipeline's own is asked even if nothing else is."""
    found: list[str | None] = []
    for query in deployment.plan.queries:
        found += [part.cluster for part in (*query.sources.values(), *query.tables.values()) if part.kind == TOPIC]
        found += [query.target_cluster] if query.writes_topics else []
    return list(dict.fromkeys(found)) or [None]


async def _prepare(cluster: Cluster, deployment: Deployment, name: str | None) -> list[str]:
    there = {topic.name for topic in await admin.list_topics(cluster)}
    written = written_topics(deployment, name)
    # A phase may read what another phase of the same pipeline writes.
    for topic in read_topics(deployment, name):
        if topic not in there and topic not in written:
            raise FatalFailure(
                f"there is no topic `{topic}` to read; make it (`ottla topics --create --topic {topic}`) "
                "or correct its name in the file"
            )
    made = [topic for topic in written if topic not in there]
    for topic in made:
        await create_topic(deployment.kafka(name), topic)
    return made


async def create_topic(kafka: Mapping[str, str], topic: str, configs: Mapping[str, str] | None = None) -> None:
    """With as many partitions and replicas as the brokers give by default."""
    cluster = shared_cluster(client_settings(kafka))
    try:
        await admin.create_topic(cluster, topic, configs=configs)
    except ApiError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # somebody was quicker
            raise


def read_topics(deployment: Deployment, cluster: str | None = None) -> list[str]:
    found: list[str] = []
    for query in deployment.plan.queries:
        for part in (*query.sources.values(), *query.tables.values()):
            source = part.open(deployment.secrets)
            if isinstance(source, TopicSource) and part.cluster == cluster:
                found += source.topics
    return list(dict.fromkeys(found))


def written_topics(deployment: Deployment, cluster: str | None = None) -> list[str]:
    found: list[str] = []
    for query in deployment.plan.queries:
        if query.target_cluster != cluster:
            continue
        for part in query.sinks:
            sink = part.open(deployment.secrets)
            topic = sink.target().topic if isinstance(sink, TransactionalSink) else None
            found += [topic] if topic is not None else []
        if query.dead_letter is not None:
            found.append(query.dead_letter)
    return list(dict.fromkeys(found))
