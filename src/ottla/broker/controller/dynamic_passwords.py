"""Passwords that brokers are given while they run: read from the metadata, and written anew when the secret changes."""

import logging
import secrets
from collections.abc import Mapping

from ottla.broker.controller.writes import broker_config_writes
from ottla.cluster.image import ClusterImage
from ottla.cluster.store import MetadataStore, StoreError, VersionConflict
from ottla.config.broker import BrokerSettings
from ottla.config.stored_passwords import decoded, encoded

logger = logging.getLogger(__name__)


def own_settings(image: ClusterImage, node_id: int, static: BrokerSettings) -> Mapping[str, str]:
    """What this broker was given while it ran. A password that cannot be read counts as not given, and is told of."""
    found = decoded(image.broker_configs.get(str(node_id), {}), static)
    for name in found.lost:
        logger.error(
            "Dynamic password config %s could not be decoded, ignoring: password.encoder.secret is not the one that it "
            "was written with; name that as password.encoder.old.secret, or set %s again",
            name, name,
        )  # fmt: skip
    return found.configs


async def encode_anew(store: MetadataStore, node_id: int, static: BrokerSettings) -> None:
    """At start: what another secret has encrypted, or none, is encrypted with the one that counts now."""
    kept = store.image.broker_configs.get(str(node_id), {})
    found = decoded(kept, static)
    if not found.old:
        return
    lost = {name: kept[name] for name in found.lost}  # whoever finds the secret again can read them
    configs = encoded(found.configs, static, secrets.token_bytes) | lost
    try:
        await store.commit(broker_config_writes(str(node_id), configs, store.version))
    except (VersionConflict, StoreError) as error:
        logger.warning(
            "Dynamic password configs could not be encrypted with the new secret, trying at next start: %s", error
        )
        return
    logger.info("Dynamic password configs were encrypted with password.encoder.secret")
