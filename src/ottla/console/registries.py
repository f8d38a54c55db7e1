"""Schema registries beside the clusters, asked in threads: their client blocks."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

from ottla.console.asking import Ask, Caller, NotThere
from ottla.console.clusters import ClusterSettings
from ottla.console.search.decoding import Decoder
from ottla.registry.client import RegistryClient

T = TypeVar("T")

SECONDS_MAX = 10.0
CLIENTS_MAX = 100


class Registries:
    """Whoever came in with a login of their own is that user to the registry, too: its rules decide."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], RegistryClient] = {}
        self._decoders: dict[tuple[str, str], Decoder] = {}

    def of(self, settings: ClusterSettings, caller: Caller) -> RegistryClient | None:
        """None where the cluster has none."""
        if settings.registry is None:
            return None
        user, password = settings.registry_login or (None, None)
        if user is not None and caller.login is not None:
            user, password = caller.login.get("sasl.username"), caller.login.get("sasl.password")
        key = (settings.name, _key(user, password))
        found = self._clients.get(key)
        if found is None:
            if len(self._clients) >= CLIENTS_MAX:
                self.close()
            found = self._clients[key] = RegistryClient(
                settings.registry, user=user, password=password, ca_file=settings.registry_ca, seconds_max=SECONDS_MAX
            )
        return found

    def decoder(self, settings: ClusterSettings, caller: Caller) -> Decoder:
        """What reads records of the cluster; it keeps the schemas that it has met."""
        client = self.of(settings, caller)
        key = next((key for key, each in self._clients.items() if each is client), (settings.name, ""))
        found = self._decoders.get(key)
        if found is None:
            found = self._decoders[key] = Decoder(client)
        return found

    async def ask(self, ask: Ask, work: Callable[[RegistryClient], T]) -> T:
        client = self.of(ask.watched.settings, ask.caller)
        if client is None:
            raise NotThere("this console knows no schema registry: start it with --registry URL")
        return await asyncio.to_thread(work, client)

    def close(self) -> None:
        clients, self._clients, self._decoders = list(self._clients.values()), {}, {}
        for client in clients:
            client.close()


def _key(user: str | None, password: str | None) -> str:
    """Tells logins apart without keeping them."""
    return "" if user is None else hashlib.sha256(f"{user}\0{password}".encode()).hexdigest()


def subjects(client: RegistryClient) -> list[str]:
    found: Any = client.get("/subjects")
    return sorted(str(each) for each in found)
