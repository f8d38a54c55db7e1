"""Who may come in: names and passwords from a file, or those that the brokers know (SCRAM)."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request

from ottla.client.errors import AuthenticationFailed
from ottla.client.settings import client_settings
from ottla.http.application import Login
from ottla.model.errors import OttlaError

KEPT_SECONDS = 5.0
"""So long is a password that the brokers took not asked about again: a changed one counts as soon as a changed ACL."""
AT_ONCE_MAX = 4
"""So many passwords are tried at the brokers at a time: whoever guesses does not take their connections and time."""
KEPT_MAX = 10_000

SCRAM_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SECRET = secrets.token_bytes(32)

logger = logging.getLogger(__name__)


class BadUsersFile(OttlaError):
    """A file of users that cannot be read."""


def read_users(path: str) -> dict[str, str]:
    """Lines of `name: password`; what follows a comma (Jetty's roles) is no part of the password."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsersFile(f"cannot read {path}: {error}") from None
    users = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, colon, password = text.partition(":")
        if not colon or not name.strip() or not password.strip():
            raise BadUsersFile(f"{path}: line {number} is not `name: password`")
        users[name.strip()] = password.partition(",")[0].strip()
    return users


def _credentials(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (name, password) if colon else None


def _digest(name: str, password: str) -> bytes:
    return hmac.digest(_SECRET, f"{len(name)}:{name}:{password}".encode(), hashlib.sha256)


def login_by_file(path: str, realm: str = "SchemaRegistry-Props") -> Login:
    """Digests are compared, in a time that says neither how long a password is nor whether there is such a user."""
    users = {name: _digest(name, password) for name, password in read_users(path).items()}
    nobody = secrets.token_bytes(32)

    async def authenticate(request: Request) -> str | None:
        given = _credentials(request)
        if given is None:
            return None
        name, password = given
        return name if hmac.compare_digest(users.get(name, nobody), _digest(name, password)) else None

    return Login(authenticate, f'Basic realm="{realm}"')


def login_by_scram(settings: Mapping[str, str], mechanism: str, realm: str = "SchemaRegistry") -> Login:
    """A name and password are good if a broker takes them. `settings` are those of the registry's own connection."""
    taken: dict[bytes, float] = {}
    turn = asyncio.Semaphore(AT_ONCE_MAX)

    async def authenticate(request: Request) -> str | None:
        given = _credentials(request)
        if given is None:
            return None
        name, password = given
        key = _digest(name, password)
        if taken.get(key, 0.0) > time.monotonic():
            return name
        async with turn:
            if taken.get(key, 0.0) > time.monotonic():  # somebody else asked meanwhile
                return name
            asked_at = time.monotonic()
            if not await _broker_takes(settings, mechanism, name, password):
                logger.info("Failed authentication with /%s", request.client.host if request.client else "-")
                return None
        if len(taken) >= KEPT_MAX:
            taken.clear()
        taken[key] = asked_at + KEPT_SECONDS
        return name

    return Login(authenticate, f'Basic realm="{realm}"')


async def _broker_takes(settings: Mapping[str, str], mechanism: str, name: str, password: str) -> bool:
    own = {key: value for key, value in settings.items() if not key.startswith("sasl.")}
    tls = "SSL" in own.get("security.protocol", "PLAINTEXT")
    own |= {
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }
    async with client_settings(own).cluster() as cluster:
        try:
            await cluster.metadata([])
        except AuthenticationFailed:
            return False
    return True
