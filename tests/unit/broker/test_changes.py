"""A change of metadata is applied by one part after the other, in an order that is written down."""

from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.changes import Follower, MetadataFollowers, topics_came_or_grew
from ottla.broker.node import Node
from ottla.cluster.embedded import EmbeddedStore
from ottla.cluster.image import ClusterImage, ImageChange, PartitionImage, TopicImage, changes_between
from ottla.config.load import settings_from

EMPTY = ClusterImage("cluster")


def image(leader: int = 1, partitions: int = 1) -> ClusterImage:
    states = (PartitionImage(leader, 0, (1, 2), (1, 2)),) * partitions
    return EMPTY.with_topics([TopicImage("t", UUID(int=7), states)])


def change(old: ClusterImage, new: ClusterImage) -> ImageChange:
    return changes_between(old, new)


def test_followers_are_told_in_their_order() -> None:
    told: list[str] = []
    followers = MetadataFollowers(*(Follower(name, lambda _, name=name: told.append(name)) for name in "bac"))  # type: ignore[misc]
    followers(change(EMPTY, image()))
    assert tuple(told) == followers.order == ("b", "a", "c")


def test_a_failing_follower_is_not_hidden() -> None:
    told: list[ImageChange] = []

    def fail(_: ImageChange) -> None:
        raise ValueError("a bug")

    followers = MetadataFollowers(Follower("fails", fail), Follower("later", told.append))
    with pytest.raises(ValueError, match="a bug"):
        followers(change(EMPTY, image()))
    assert told == []


def test_a_broker_applies_settings_first_and_coordinators_last(tmp_path: Path) -> None:
    node = Node(settings_from({"log.dirs": str(tmp_path)}), EmbeddedStore.open(tmp_path))
    assert node.followers.order == (
        "settings",
        "access control lists",
        "quotas",
        "partitions",
        "failed disks",
        "delegation tokens",
        "consumer groups",
        "metrics of clients",
        "coordinators",
    )


def test_groups_care_for_topics_and_not_for_leaders() -> None:
    assert topics_came_or_grew(change(EMPTY, image()))
    assert topics_came_or_grew(change(image(), image(partitions=2)))
    assert topics_came_or_grew(change(image(), EMPTY))
    assert not topics_came_or_grew(change(image(), image(leader=2)))
