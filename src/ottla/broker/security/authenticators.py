"""Who may log in with what: machines for logins, made of the settings and the metadata as they are at that moment."""

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ottla.broker.security.login_counts import LoginCounts
from ottla.broker.security.sasl.gssapi import Gssapi
from ottla.broker.security.sasl.login import Login, Offer
from ottla.broker.security.sasl.oauthbearer import OAuthBearer
from ottla.broker.security.sasl.plain import Plain
from ottla.broker.security.sasl.scram import Known, Scram
from ottla.broker.security.sasl.scram_credentials import MECHANISMS as SCRAM_MECHANISMS
from ottla.broker.security.sasl.scram_credentials import (
    IterationCounts,
    ScramMechanism,
    iterations_of,
    read_credential,
)
from ottla.broker.security.sasl.verdicts import Mechanism
from ottla.broker.security.token_secrets import TokenSecrets
from ottla.broker.session import Session
from ottla.cluster.image import ClusterImage, user_entity
from ottla.config.broker import BrokerSettings
from ottla.config.kerberos_rules import local_name, read_rules
from ottla.config.listeners import opened_listeners
from ottla.config.per_listener import settings_for
from ottla.config.sasl import GSSAPI, OAUTHBEARER, PLAIN
from ottla.config.sasl_listeners import kerberos_key, mechanisms_of, users_of

if TYPE_CHECKING:
    from ottla.broker.security.kerberos import ServiceKey
    from ottla.broker.security.oauth_tokens import OAuthTokens

logger = logging.getLogger(__name__)

NONCE_BYTES = 24
DECOY_BYTES = 32


class Authenticators:
    """Everything that a broker needs to know who its clients are."""

    def __init__(self, settings: Callable[[], BrokerSettings], image: Callable[[], ClusterImage]) -> None:
        self._settings = settings
        self._image = image
        self.decoy = secrets.token_bytes(DECOY_BYTES)
        """Stands in for what unknown users do not have. The same on all brokers, once the metadata has one."""
        self.tokens = TokenSecrets(settings, image)
        self._passwords: tuple[BrokerSettings | None, dict[str, Mapping[str, str]]] = (None, {})
        self._counted: tuple[object, dict[str, IterationCounts]] = (None, {})
        self._oauth_tokens: OAuthTokens | None = None
        self._service_keys: dict[str, ServiceKey] = {}
        self.counts = LoginCounts()

    def begin(self, listener: str) -> Login:
        """For a connection that has come through this listener."""
        return Login(lambda: self._offer(listener), self._settings().sasl_server_max_receive_size)

    def start(self) -> None:
        """Begin to read the keys of issuers, and make what logins with delegation tokens are checked with. ConfigError
        if the key of Kerberos is missing: nobody could log in with it."""
        self.tokens.prepare(self._image().tokens)
        settings = self._settings()
        for listener in opened_listeners(settings):
            if listener.speaks_sasl and OAUTHBEARER in mechanisms_of(settings, listener.name):
                self._tokens().keeper(settings_for(settings, listener.name, OAUTHBEARER))
            if listener.speaks_sasl and GSSAPI in mechanisms_of(settings, listener.name):
                self._service_key(listener.name)

    async def stop(self) -> None:
        if self._oauth_tokens is not None:
            await self._oauth_tokens.stop()

    def accepted(self, session: Session, now: float, *, can_renew: bool) -> None:
        """A login by SASL has come to its end. `can_renew`: the client knows how to do so again (KIP-368)."""
        login = session.login
        if isinstance(login, Login) and login.logins > 1:
            self.counts.renewed(session.listener, 1000 * (now - login.begun_at), now)
        else:
            self.counts.accepted(session.listener, can_renew=can_renew)
        logger.debug(
            "Successfully authenticated %s from %s on listener %s", session.principal, session.host, session.listener
        )

    async def refused(self, session: Session, why: str) -> None:
        """Say it in the log, and let the client wait: who guesses is to take time."""
        login = session.login
        self.counts.refused(session.listener, was_in=isinstance(login, Login) and login.logins > 0)
        logger.info("Failed authentication with /%s on listener %s (%s)", session.host, session.listener, why)
        await asyncio.sleep(self._settings().connection_failed_authentication_delay_ms / 1000)

    def _offer(self, listener: str) -> Offer:
        settings = self._settings()
        return Offer(
            mechanisms_of(settings, listener),
            lambda mechanism: self._machine(listener, mechanism),
            lambda mechanism: settings_for(settings, listener, mechanism).connections_max_reauth_ms,
        )

    def _machine(self, listener: str, mechanism: str) -> Mechanism:
        if mechanism == PLAIN:
            return Plain(self._users(listener), self.decoy)
        if mechanism == OAUTHBEARER:
            return OAuthBearer(self._tokens().verifier(settings_for(self._settings(), listener, OAUTHBEARER)))
        if mechanism == GSSAPI:
            return self._kerberos_machine(listener)
        scram = SCRAM_MECHANISMS[mechanism]
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        counts = self._iteration_counts(scram)
        return Scram(scram, lambda name, by_token: self._find(scram, name, by_token), nonce, self.decoy, counts)

    def _kerberos_machine(self, listener: str) -> Mechanism:
        key = self._service_key(listener)
        rules = read_rules(self._settings().sasl_kerberos_principal_to_local_rules)
        return Gssapi(key.begin, lambda principal: local_name(principal, rules, key.realm))

    def _service_key(self, listener: str) -> "ServiceKey":
        """ConfigError if there is none. Read once: the library looks into the keytab again at every login."""
        if listener not in self._service_keys:
            # Not before a listener needs it: it is an extra.
            from ottla.broker.security.kerberos import ServiceKey  # noqa: PLC0415

            own = kerberos_key(self._settings(), listener)
            self._service_keys[listener] = ServiceKey(own.keytab or "", own.principal or "")
        return self._service_keys[listener]

    def _iteration_counts(self, mechanism: ScramMechanism) -> IterationCounts:
        """Of all users. Counted again when one has changed, by whoever logs in next, known or not."""
        users = self._image().entity_configs
        if self._counted[0] is not users:
            self._counted = (users, {})
        known = self._counted[1]
        if mechanism.name not in known:
            texts = (configs[mechanism.name] for configs in users.values() if mechanism.name in configs)
            known[mechanism.name] = IterationCounts(filter(None, map(iterations_of, texts)))
        return known[mechanism.name]

    def _users(self, listener: str) -> Mapping[str, str]:
        """Read once, and again when the settings have changed."""
        settings = self._settings()
        if self._passwords[0] is not settings:
            self._passwords = (settings, {})
        known = self._passwords[1]
        if listener not in known:
            known[listener] = users_of(settings, listener).passwords
        return known[listener]

    def _find(self, mechanism: ScramMechanism, name: str, by_token: bool) -> Known | None:
        if by_token:
            return self.tokens.find(mechanism, name)
        text = self._image().entity_configs.get(user_entity(name), {}).get(mechanism.name)
        if text is None:
            return None
        try:
            return Known(read_credential(text), name)
        except ValueError as error:
            logger.error("The %s credential of user %s cannot be read: %s", mechanism.name, name, error)  # noqa: TRY400
            return None

    def _tokens(self) -> "OAuthTokens":
        if self._oauth_tokens is None:
            # Not before a listener needs it: its libraries take a tenth of a second to load.
            from ottla.broker.security.oauth_tokens import OAuthTokens  # noqa: PLC0415

            self._oauth_tokens = OAuthTokens()
        return self._oauth_tokens
