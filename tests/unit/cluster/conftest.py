import itertools
from collections.abc import Iterator

import pytest
from tests.unit.cluster.worlds import ModelWorld, RealWorld, World

from ottla.testing.zookeeper import ZooKeeperEnsemble, zookeeper

_chroots = itertools.count(1)


@pytest.fixture(scope="session")
def zookeeper_server() -> Iterator[ZooKeeperEnsemble]:
    """One real server for all tests; each has its own chroot in it."""
    with zookeeper() as ensemble:
        yield ensemble


@pytest.fixture
def real_world(zookeeper_server: ZooKeeperEnsemble) -> Iterator[RealWorld]:
    world = RealWorld(zookeeper_server.members[0].port, f"/test-{next(_chroots)}/below")
    yield world
    world.close()


@pytest.fixture
def model_world() -> Iterator[ModelWorld]:
    world = ModelWorld()
    yield world
    world.close()


@pytest.fixture(params=["model_world", "real_world"])
def world(request: pytest.FixtureRequest) -> World:
    """The model, then the real thing."""
    found: World = request.getfixturevalue(request.param)
    return found
