"""One registry for the session; tests keep apart by the names of their subjects."""

from collections.abc import Iterator

import pytest

from ottla.registry.client import RegistryClient
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker


@pytest.fixture(scope="session")
def registry_process(ottla_broker: RunningBroker) -> Iterator[RunningRegistry]:
    with registry(ottla_broker.bootstrap) as running:
        yield running


@pytest.fixture
def client(registry_process: RunningRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(registry_process.url) as client:
        yield client


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return f"{request.node.name}-value"
