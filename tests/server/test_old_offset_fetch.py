"""Offsets of groups from brokers that tell those of one group at a time, as Kafka 2.8 does."""

import asyncio
from collections.abc import Callable

from ottla.client import admin, groups
from ottla.client.cluster import Cluster
from ottla.model.names import TopicPartition
from ottla.protocol.messages.api_versions import ApiVersion
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest
from ottla.testing import RunningBroker


async def look(bootstrap: str, topic: str, names: list[str]) -> None:
    async with Cluster(bootstrap) as cluster:
        await admin.create_topic(cluster, topic, partitions=2)
        for number, name in enumerate(names):
            await groups.commit_offsets(cluster, name, {TopicPartition(topic, 1): number})
        node = await cluster.coordinator(names[0])
        new = await groups.group_offsets_of(cluster, node, [*names, "nobody"])
        (await cluster.connection(node)).versions[OffsetFetchRequest.API_KEY] = ApiVersion(
            api_key=OffsetFetchRequest.API_KEY, min_version=1, max_version=7
        )
        assert await groups.group_offsets_of(cluster, node, [*names, "nobody"]) == new
        assert [new[name][TopicPartition(topic, 1)].offset for name in names] == [0, 1, 2]
        assert await groups.group_offsets(cluster, names[2], stable=True) == new[names[2]]


def test_many_groups_are_asked_about_one_by_one(ottla_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    asyncio.run(look(ottla_broker.bootstrap, unique("topic"), [unique("group") for _ in range(3)]))
