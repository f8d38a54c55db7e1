"""Who may read the metrics: TLS as a listener has it, and users by name and password.

A password is checked as SCRAM's are, which is slow by design: in a thread, a few at a time, and who was let in is
remembered for as long as the credential stays. Whoever is not let in waits, and learns nothing about who exists.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import logging
import os
import secrets
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request

from ottla.broker.security.sasl.scram_credentials import (
    MECHANISMS,
    ScramCredential,
    credential_of,
    decoy_credential,
    read_credential,
    salted_password,
)
from ottla.broker.security.sasl.scram_credentials import IterationCounts as Counts
from ottla.broker.security.tls.listeners import listener_context
from ottla.cluster.image import ClusterImage, user_entity
from ottla.config.broker import BrokerSettings
from ottla.config.metrics_access import FILE, SCRAM
from ottla.config.properties import parse_properties
from ottla.config.setting import ConfigError
from ottla.http.application import Login

if TYPE_CHECKING:
    from ottla.broker.security.tls.listeners import TlsListeners

logger = logging.getLogger(__name__)

AT_ONCE_MAX = 2
REMEMBERED_MAX = 1_000
NAME_BYTES_MAX = 1_024

Check = Callable[[str, str], bool]
"""Whether a password is a user's; slow."""


def metrics_login(settings: BrokerSettings, image: Callable[[], ClusterImage]) -> Login | None:
    """None if nobody is asked. ConfigError if the file of users cannot be read."""
    source = settings.metrics_listener_login
    if not source:
        return None
    check = ScramPasswords(image) if source == SCRAM else FilePasswords(Path(source.removeprefix(FILE)))
    return Login(BasicLogin(check, settings.connection_failed_authentication_delay_ms / 1000).authenticate)


def metrics_tls(settings: BrokerSettings, tls: "Callable[[], TlsListeners | None]") -> ssl.SSLContext | None:
    """A context with the stores of the listener that is named, and with its new ones when they are replaced."""
    name = (settings.metrics_listener_tls or "").upper()
    if not name:
        return None
    context = listener_context(settings, name)

    def newest(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        listeners = tls()
        if listeners is not None and name in listeners:
            connection.context = listeners[name].context

    context.sni_callback = newest  # called without a name too
    return context


class BasicLogin:
    """HTTP Basic. Few passwords are computed at a time, so that whoever guesses does not take the machine."""

    def __init__(self, check: "ScramPasswords | FilePasswords", delay_s: float) -> None:
        self._check = check
        self._delay_s = delay_s
        self._turn = asyncio.Semaphore(AT_ONCE_MAX)

    async def authenticate(self, request: Request) -> str | None:
        shown = _name_and_password(request.headers.get("authorization", ""))
        if shown is None:
            return None
        user, password = shown
        if self._check.remembers(user, password):
            return user
        async with self._turn:
            if await asyncio.to_thread(self._check.fits, user, password):
                return user
        host = request.client.host if request.client is not None else "-"
        logger.info("Failed authentication with /%s on the listener of metrics", host)
        await asyncio.sleep(self._delay_s)
        return None


class ScramPasswords:
    """Of users in the metadata, by whichever SCRAM mechanism they have."""

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image
        self._secret = secrets.token_bytes(32)
        self._known: dict[str, tuple[str, bytes]] = {}
        """Of users who were let in: the credential, and a digest of the password that fitted it."""

    def remembers(self, user: str, password: str) -> bool:
        text, digest = self._known.get(user, ("", b""))
        return text == self._credential(user)[1] and hmac.compare_digest(digest, self._digest(password))

    def fits(self, user: str, password: str) -> bool:
        mechanism_name, text = self._credential(user)
        mechanism = MECHANISMS[mechanism_name]
        wanted = decoy_credential(mechanism, self._secret, user, Counts())
        if text:
            try:
                wanted = read_credential(text)
            except ValueError:
                text = ""
        salted = salted_password(mechanism, password, wanted.salt, wanted.iterations)
        found: ScramCredential = credential_of(mechanism, salted, wanted.salt, wanted.iterations)
        if not hmac.compare_digest(found.stored_key, wanted.stored_key) or not text:
            return False
        if len(self._known) >= REMEMBERED_MAX:
            self._known.clear()
        self._known[user] = (text, self._digest(password))
        return True

    def _credential(self, user: str) -> tuple[str, str]:
        configs = self._image().entity_configs.get(user_entity(user), {})
        name = next((name for name in MECHANISMS if name in configs), next(iter(MECHANISMS)))
        return name, configs.get(name, "")

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._secret, password.encode(), hashlib.sha256)


class FilePasswords:
    """Lines of user=password. The file is looked at each time, and read when it is not the one that was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = secrets.token_bytes(32)
        self._users: Mapping[str, str] = {}
        self._read_at: object = None
        try:
            self._refresh()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError([f"metrics.listener.login: {path}: {why}"]) from None

    def remembers(self, user: str, password: str) -> bool:
        return False

    def fits(self, user: str, password: str) -> bool:
        try:
            self._refresh()
        except (OSError, ValueError) as error:
            logger.warning("Users of the listener of metrics cannot be read again, %s: %s", self._path, error)
        known = self._users.get(user)
        expected = self._digest(known if known is not None else "")
        return hmac.compare_digest(expected, self._digest(password)) and bool(known)

    def _refresh(self) -> None:
        found = os.stat(self._path)
        now = (found.st_mtime_ns, found.st_ino, found.st_size)
        if now != self._read_at:
            self._users = parse_properties(self._path.read_text(encoding="utf-8"))
            self._read_at = now

    def _digest(self, password: str) -> bytes:
        return hmac.digest(self._key, password.encode(), hashlib.sha256)


def _name_and_password(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    if not colon or not user or not password or len(user) > NAME_BYTES_MAX or len(password) > NAME_BYTES_MAX:
        return None
    return user, password
