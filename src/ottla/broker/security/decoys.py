"""A secret that all brokers share, of which answers to unknown users are made: else two would give them away."""

import base64
import secrets

import msgspec
from msgspec import Struct

from ottla.cluster.store import ABSENT, MetadataStore, StoreError, VersionConflict, Write

DECOY_PATH = "/config/users_decoy"
"""Beside the users: where ZooKeeper has access lists it is as hidden as they are."""
DECOY_BYTES = 32


class _Decoy(Struct):
    secret: str
    version: int = 1


async def shared_decoy(store: MetadataStore) -> bytes:
    """The secret, made if there is none. A store that cannot be written leaves this broker with one of its own."""
    known = store.read(DECOY_PATH)
    if known is None:
        made = msgspec.json.encode(_Decoy(base64.b64encode(secrets.token_bytes(DECOY_BYTES)).decode()))
        try:
            await store.commit([Write(DECOY_PATH, made, ABSENT)])
        except (VersionConflict, StoreError):
            await store.refresh()  # another broker was quicker, or will be
        known = store.read(DECOY_PATH)
    if known is None:
        return secrets.token_bytes(DECOY_BYTES)
    return base64.b64decode(msgspec.json.decode(known.data, type=_Decoy).secret)
