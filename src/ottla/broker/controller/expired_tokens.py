"""Delegation tokens that have expired are removed by the controller: nobody could log in with them any more."""

from functools import partial

from ottla.broker.controller.loop import Controller
from ottla.broker.security.delegation_tokens import kept_unless_expired
from ottla.cluster.store import MetadataStore


async def drop_expired(controller: Controller, store: MetadataStore, node_id: int, now_ms: int) -> None:
    image = store.image
    if image.controller_id == node_id:
        for token in [each for each in image.tokens.values() if each.expiry_timestamp < now_ms]:
            await controller.alter_token(token.token_id, partial(kept_unless_expired, now_ms))
