"""What logins with delegation tokens are checked with: made in a thread as soon as a token is known."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable

from ottla.broker.security.delegation_tokens import USER, password_of, secret_of
from ottla.broker.security.sasl.scram import Known
from ottla.broker.security.sasl.scram_credentials import (
    ITERATIONS_MIN,
    MECHANISMS,
    ScramCredential,
    ScramMechanism,
    credential_of,
    salt_of,
    salted_password,
)
from ottla.cluster.image import ClusterImage, ImageChange
from ottla.config.sasl import SaslSettings


class TokenSecrets:
    """Credentials by mechanism and token."""

    def __init__(self, settings: Callable[[], SaslSettings], image: Callable[[], ClusterImage]) -> None:
        self._settings = settings
        self._image = image
        self._made: dict[tuple[str, str], ScramCredential] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, mechanism: ScramMechanism, token_id: str) -> Known | None:
        token, key = self._image().tokens.get(token_id), self._settings().delegation_token_secret_key
        if token is None or key is None or not token.owner.startswith(USER):
            return None
        credential = self._made.get((mechanism.name, token_id)) or self._make(mechanism, key, token_id)
        return Known(credential, token.owner.removeprefix(USER), token.expiry_timestamp)

    def prepare(self, token_ids: Iterable[str]) -> None:
        key = self._settings().delegation_token_secret_key
        if key is not None:
            for token_id in token_ids:
                task = asyncio.get_running_loop().create_task(asyncio.to_thread(self._make_all, key, token_id))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def apply(self, change: ImageChange) -> None:
        old, new = change.old.tokens, change.new.tokens
        if old is new:
            return
        self._made = {place: made for place, made in self._made.items() if place[1] in new}
        self.prepare(token_id for token_id in new if token_id not in old)

    def _make_all(self, key: str, token_id: str) -> None:
        for mechanism in MECHANISMS.values():
            self._make(mechanism, key, token_id)

    def _make(self, mechanism: ScramMechanism, key: str, token_id: str) -> ScramCredential:
        secret = secret_of(key, token_id)
        salt = salt_of(hashlib.sha512(b"salt" + secret).digest())
        salted = salted_password(mechanism, password_of(secret), salt, ITERATIONS_MIN)
        made = credential_of(mechanism, salted, salt, ITERATIONS_MIN)
        self._made[mechanism.name, token_id] = made
        return made
