"""Topics that a pipeline needs: those it reads must be there, those it writes are made if they are not."""

from collections.abc import Mapping

from ottla.client import admin
from ottla.client.cluster import Cluster
from ottla.client.settings import client_settings
from ottla.model.errors import ApiError, ErrorCode
from ottla.pipelines.connectors.topic import TopicSink, TopicSource
from ottla.pipelines.errors import FatalFailure
from ottla.pipelines.runner.deployment import Deployment
from ottla.spark import loop
from ottla.spark.connections import shared_cluster

WAIT_SECONDS_MAX = 10.0


def prepare_topics(deployment: Deployment) -> list[str]:
    """The topics that were made. FatalFailure if a source's topic is missing."""
    settings = client_settings(deployment.kafka)
    # Whoever waits for this does nothing else meanwhile; it is asked again after a pause.
    patient = settings._replace(total_timeout_s=min(settings.total_timeout_s, WAIT_SECONDS_MAX))
    return loop.run(_prepare(shared_cluster(patient), deployment))


async def _prepare(cluster: Cluster, deployment: Deployment) -> list[str]:
    there = {topic.name for topic in await admin.list_topics(cluster)}
    written = written_topics(deployment)
    # A phase may read what another phase of the same pipeline writes.
    for topic in read_topics(deployment):
        if topic not in there and topic not in written:
            raise FatalFailure(
                f"there is no topic `{topic}` to read; make it (`ottla topics --create --topic {topic}`) "
                "or correct its name in the file"
            )
    made = [topic for topic in written if topic not in there]
    for topic in made:
        await create_topic(deployment, topic)
    return made


async def create_topic(deployment: Deployment, topic: str, configs: Mapping[str, str] | None = None) -> None:
    """With as many partitions and replicas as the brokers give by default."""
    cluster = shared_cluster(client_settings(deployment.kafka))
    try:
        await admin.create_topic(cluster, topic, configs=configs)
    except ApiError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # somebody was quicker
            raise


def read_topics(deployment: Deployment) -> list[str]:
    found: list[str] = []
    for query in deployment.plan.queries:
        for part in (*query.sources.values(), *query.tables.values()):
            source = part.open(deployment.secrets)
            if isinstance(source, TopicSource):
                found += source.topics
    return list(dict.fromkeys(found))


def written_topics(deployment: Deployment) -> list[str]:
    found: list[str] = []
    for query in deployment.plan.queries:
        for part in query.sinks:
            sink = part.open(deployment.secrets)
            if isinstance(sink, TopicSink):
                found.append(sink.options.topic)
        if query.dead_letter is not None:
            found.append(query.dead_letter)
    return list(dict.fromkeys(found))
