"""SCRAM credentials in the tools: read from a command line, made of passwords, written by a broker or without one."""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from ottla.broker.security.sasl.scram_changes import Deletion, ScramAlteration, Upsertion, altered, refusals
from ottla.broker.security.sasl.scram_credentials import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    salt_of,
    salted_password,
)
from ottla.cli.common.output import CommandError
from ottla.cluster.documents import config_document, entity_config_path
from ottla.cluster.image import ClusterImage, user_entity
from ottla.cluster.store import MetadataStore, VersionConflict, Write
from ottla.config.broker import BrokerSettings
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion

_VALUE = re.compile(r"\[(?P<inside>.*)\]", re.DOTALL)
_RANDOM_BYTES = 32
_ATTEMPTS_MAX = 5


class NewCredential(NamedTuple):
    user: str
    mechanism: str
    password: str
    iterations: int = ITERATIONS_MIN

    def __repr__(self) -> str:
        return f"NewCredential({self.user!r}, {self.mechanism})"  # no secrets

    def salted(self) -> Upsertion:
        """Slow by design."""
        mechanism = MECHANISMS[self.mechanism]
        salt = salt_of(secrets.token_bytes(_RANDOM_BYTES))
        salted = salted_password(mechanism, self.password, salt, self.iterations)
        return Upsertion(self.user, mechanism.number, self.iterations, salt, salted)


def read_credential(mechanism: str, value: str, user: str | None = None) -> NewCredential:
    """`[iterations=8192,password=x]`, with `name=` where the user is not known otherwise. CommandError, no secrets."""
    match = _VALUE.fullmatch(value.strip())
    inside = match["inside"] if match else value
    options: dict[str, str] = {}
    rest = inside
    # A password may have commas and equal signs: it goes to the end, unless another word follows.
    while rest:
        key, equals, text = rest.partition("=")
        key = key.strip().lower()
        if not equals or key not in ("name", "iterations", "password", "salt"):
            raise CommandError(f"{mechanism} wants [iterations=8192,password=...]; it does not read so")
        following = re.search(r",\s*(name|iterations|password|salt)\s*=", text)
        options[key] = (text[: following.start()] if following else text).strip().strip('"')
        rest = text[following.start() + 1 :] if following else ""
    name = user or options.get("name")
    if not name or not options.get("password"):
        raise CommandError(f"{mechanism} needs {'a password' if name else 'name and password'}")
    return NewCredential(name, mechanism, options["password"], read_iterations(options.get("iterations")))


def read_iterations(text: str | None) -> int:
    if text is None:
        return ITERATIONS_MIN
    if not text.isdecimal() or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise CommandError(f"iterations are a number from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    return int(text)


def as_upsertion(made: Upsertion) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=made.user,
        mechanism=made.mechanism,
        iterations=made.iterations,
        salt=made.salt,
        salted_password=made.salted_password,
    )


def as_deletion(alteration: Deletion) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=alteration.user, mechanism=alteration.mechanism)


async def write_offline(store: MetadataStore, alterations: Sequence[ScramAlteration]) -> None:
    """Straight into the metadata: before the first broker runs nobody else could."""
    for alteration in alterations:
        for error in refusals([alteration]).values():
            raise error
        for attempt in range(_ATTEMPTS_MAX):
            entity = user_entity(alteration.user)
            configs = altered(alteration, store.image.entity_configs.get(entity, {}))
            path = entity_config_path(entity)
            try:
                await store.commit([Write(path, config_document(configs), store.version(path))])
                break
            except VersionConflict:
                if attempt + 1 == _ATTEMPTS_MAX:
                    raise


def offline_users(image: ClusterImage) -> dict[str, dict[int, int]]:
    from ottla.broker.security.sasl.scram_credentials import read_credential as read

    users: dict[str, dict[int, int]] = {}
    for ((kind, name), *rest), configs in image.entity_configs.items():
        known = {
            mechanism.number: read(configs[mechanism.name]).iterations
            for mechanism in MECHANISMS.values()
            if mechanism.name in configs
        }
        if kind == "users" and name is not None and not rest and known:
            users[name] = known
    return users


@asynccontextmanager
async def offline_store(settings: BrokerSettings) -> AsyncIterator[MetadataStore]:
    """The metadata of a broker that does not run, or of a cluster in its ZooKeeper."""
    from ottla.cluster.embedded import EmbeddedStore

    store: MetadataStore
    if settings.zookeeper_connect:
        from ottla.cluster.zookeeper.opening import open_zookeeper

        store = await open_zookeeper(settings)
    else:
        store = EmbeddedStore.open(settings.data_dirs[0])
    try:
        yield store
    finally:
        await store.close()


async def salted_in_threads(credentials: Sequence[NewCredential]) -> list[Upsertion]:
    return list(await asyncio.gather(*(asyncio.to_thread(each.salted) for each in credentials)))
