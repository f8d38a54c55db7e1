"""Sessions of SASL that a broker ends, and our client's connections that must outlive them."""

import time
from collections.abc import Mapping

from ottla.client.settings import client_settings

SESSION_MS = 2_000
"""`connections.max.reauth.ms` of the listeners under test."""


async def outlives_sessions(settings: Mapping[str, str]) -> bool:
    """Whether one connection serves requests for two sessions and a half."""
    async with client_settings(settings).cluster(patience_s=60.0) as cluster:
        await cluster.metadata([])
        connection = await cluster.connection(next(iter(cluster.brokers)))
        ends = time.monotonic() + 2.5 * SESSION_MS / 1000
        while time.monotonic() < ends:
            await cluster.metadata([])
        return connection.usable
