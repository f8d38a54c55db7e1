"""Whose quotas, in the protocol's words and in those of the folders that they are kept in."""

from collections.abc import Mapping

from ottla.cluster.image import Entity

USER, CLIENT_ID, IP = "user", "client-id", "ip"

FOLDERS = {USER: "users", CLIENT_ID: "clients", IP: "ips"}
"""By type, in the order in which an entity of several is written."""

TYPES = {folder: kind for kind, folder in FOLDERS.items()}


def entity_in(names: Mapping[str, str | None]) -> Entity:
    """The entity with these names by type; None is the default."""
    return tuple((folder, names[kind]) for kind, folder in FOLDERS.items() if kind in names)


def names_of(entity: Entity) -> dict[str, str | None]:
    """The other way round."""
    return {TYPES[folder]: name for folder, name in entity}
