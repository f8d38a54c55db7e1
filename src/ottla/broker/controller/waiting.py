"""Waiting for the cluster to be as someone wants it."""

import asyncio
from collections.abc import Callable

from ottla.cluster.image import ClusterImage, ImageChange
from ottla.cluster.store import MetadataStore


async def until(store: MetadataStore, holds: Callable[[ClusterImage], bool], timeout_ms: int) -> bool:
    """Whether it holds, now or within this time. Looks again at every change."""
    if holds(store.image):
        return True
    reached = asyncio.get_running_loop().create_future()

    def look(change: ImageChange) -> None:
        if not reached.done() and holds(change.new):
            reached.set_result(None)

    end = store.subscribe(look)
    try:
        async with asyncio.timeout(max(0, timeout_ms) / 1000):
            await reached
    except TimeoutError:
        return False
    finally:
        end()
    return True
