"""Who asks the session's registry."""

from collections.abc import Iterator

import pytest

from ottla.registry.client import RegistryClient
from ottla.testing.registry import RunningRegistry


@pytest.fixture
def client(registry_process: RunningRegistry) -> Iterator[RegistryClient]:
    with RegistryClient(registry_process.url) as client:
        yield client


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return f"{request.node.name}-value"
