"""How many partitions topics have, as a writer needs it. Asked once a minute by each process."""

import asyncio
import time
from collections.abc import Collection

from ottla.client.cluster import Cluster, error_code, raise_for
from ottla.client.settings import ClientSettings
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.spark import loop
from ottla.spark.connections import shared_cluster
from ottla.spark.errors import NoSuchTopic

AGE_SECONDS_MAX = 60.0
CREATION_SECONDS_MAX = 10.0
PAUSE_SECONDS = 0.1

_known: dict[tuple[ClientSettings, str], tuple[float, int]] = {}


def partition_counts(settings: ClientSettings, topics: Collection[str]) -> dict[str, int]:
    """Topics that are not there are made, if the brokers do that (auto.create.topics.enable)."""
    now = time.monotonic()
    counts: dict[str, int] = {}
    for topic in topics:
        asked_at, count = _known.get((settings, topic), (0.0, 0))
        if count and now - asked_at < AGE_SECONDS_MAX:
            counts[topic] = count
    missing = sorted(set(topics) - set(counts))
    if missing:
        found = loop.run(_look_up(shared_cluster(settings), missing))
        for topic, count in found.items():
            _known[settings, topic] = (now, count)
        counts.update(found)
    return counts


async def _look_up(cluster: Cluster, topics: list[str]) -> dict[str, int]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in topics], allow_auto_topic_creation=True
    )

    async def attempt() -> dict[str, int]:
        response = await cluster.call(request, MetadataResponse, min_version=4)
        return _counts(response)

    deadline = time.monotonic() + CREATION_SECONDS_MAX
    while True:
        try:
            return await cluster.retrying(attempt)
        except ApiError as error:
            # A topic that is being made is unknown for a moment.
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            if time.monotonic() > deadline:
                raise NoSuchTopic(str(error)) from error
        await asyncio.sleep(PAUSE_SECONDS)


def _counts(response: MetadataResponse) -> dict[str, int]:
    raise_for(response.error_code)
    for topic in response.topics:
        code = error_code(topic.error_code)
        reason = "is not there, and the brokers make no topics by themselves: create it first"
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            reason = f"cannot be written to: {code.name}"
        raise_for(topic.error_code, f"topic `{topic.name}` {reason}")
    return {topic.name or "": len(topic.partitions) for topic in response.topics}


loop.after_fork(_known.clear)
