"""Schema registries beside the clusters, asked in threads: their client blocks."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.console.asking import NotThere
from ottla.console.clusters import ClusterSettings
from ottla.console.search.decoding import Decoder
from ottla.registry.client import RegistryClient

T = TypeVar("T")

SECONDS_MAX = 10.0


class Registries:
    def __init__(self) -> None:
        self._clients: dict[str, RegistryClient] = {}
        self._decoders: dict[str, Decoder] = {}

    def of(self, settings: ClusterSettings) -> RegistryClient | None:
        """None where the cluster has none."""
        if settings.registry is None:
            return None
        found = self._clients.get(settings.name)
        if found is None:
            user, password = settings.registry_login or (None, None)
            found = self._clients[settings.name] = RegistryClient(
                settings.registry, user=user, password=password, ca_file=settings.registry_ca, seconds_max=SECONDS_MAX
            )
        return found

    def decoder(self, settings: ClusterSettings) -> Decoder:
        """What reads records of the cluster; it keeps the schemas that it has met."""
        found = self._decoders.get(settings.name)
        if found is None:
            found = self._decoders[settings.name] = Decoder(self.of(settings))
        return found

    async def ask(self, settings: ClusterSettings, work: Callable[[RegistryClient], T]) -> T:
        client = self.of(settings)
        if client is None:
            raise NotThere("this console knows no schema registry: start it with --registry URL")
        return await asyncio.to_thread(work, client)

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def subjects(client: RegistryClient) -> list[str]:
    found: Any = client.get("/subjects")
    return sorted(str(each) for each in found)
