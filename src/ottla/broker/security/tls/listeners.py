"""The contexts of a broker's TLS listeners, and how they are replaced while it runs.

A change is checked before it is written (`check`): a store that cannot be read, or a certificate that clients would not
take for this broker's, is refused with the reason. What is written is then in force for new connections (`apply`);
those that are there go on with what they have.
"""

import datetime
import logging
import os
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from ottla.broker.session import ANONYMOUS, Principal
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import (
    ListenerAddress,
    asks_for_certificates,
    inter_broker_listener,
    opened_listeners,
)
from ottla.config.per_listener import PREFIX, own_value, settings_for
from ottla.tls.ciphers import read_suites
from ottla.tls.contexts import Agreement, client_context, server_context, try_handshake
from ottla.tls.names import alternative_names, distinguished_name, owner_of
from ottla.tls.principal_mapping import Rule, principal_name, read_rules
from ottla.tls.stores import (
    KeyStore,
    StoreError,
    StoreSettings,
    TrustStore,
    lifetime_problem,
    load_key_store,
    load_trust_store,
)

logger = logging.getLogger(__name__)

_VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Stores(NamedTuple):
    """What the settings of one listener name, read."""

    keys: KeyStore
    trust: TrustStore | None
    agreement: Agreement


class ListenerTls(NamedTuple):
    """What new connections of one listener get."""

    context: ssl.SSLContext
    stores: Stores
    rules: tuple[Rule, ...]
    made_of: tuple[object, ...]
    """Settings, and when their files were written: other ones make another."""

    def principal(self, certificate: bytes | None) -> Principal | None:
        """Who the owner of a certificate is; None if no rule has a name for them."""
        if certificate is None:
            return ANONYMOUS
        name = principal_name(owner_of(certificate), self.rules)
        return None if name is None else Principal("User", name)


class TlsListeners:
    """Those of one broker, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, ListenerTls] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> ListenerTls:
        return self._by_name[name]

    def load(self, settings: BrokerSettings, static: BrokerSettings) -> None:
        """At start. What was changed at run time and cannot be used must not keep the broker from being mended."""
        try:
            self._by_name = _read(settings)
        except StoreError as error:
            if settings.per_listener == static.per_listener:
                raise
            logger.error("%s; what the broker was started with is used instead", error)  # noqa: TRY400
            self._by_name = _read(static)
        for name, tls in self._by_name.items():
            _tell(name, tls)
        _check_among_brokers(settings, self._by_name)

    def check(self, settings: BrokerSettings) -> None:
        """StoreError if these settings could not take the place of those in force."""
        new = _read(settings)
        for name, tls in new.items():
            if name in self._by_name:
                _check_replacement(name, settings, self._by_name[name].stores, tls.stores)
        _check_among_brokers(settings, new)

    def apply(self, settings: BrokerSettings) -> None:
        """Put these settings in force. They were checked; if a file has changed since, the old ones stay."""
        for address in opened_listeners(settings):
            if not address.speaks_tls:
                continue
            try:
                made_of = _made_of(settings, address)
                if made_of == self._by_name[address.name].made_of:
                    continue
                self._by_name[address.name] = tls = _listener_tls(settings, address)
            except StoreError as error:
                logger.error("Listener %s: Keeping its key and trust stores as they were: %s", address.name, error)  # noqa: TRY400
                continue
            logger.info("Listener %s: Reloaded its key and trust stores; new connections use them", address.name)
            _tell(address.name, tls)


def _read(settings: BrokerSettings) -> dict[str, ListenerTls]:
    return {
        address.name: _listener_tls(settings, address) for address in opened_listeners(settings) if address.speaks_tls
    }


def listener_context(settings: BrokerSettings, name: str) -> ssl.SSLContext:
    """A context of its own with the stores of a listener that speaks TLS."""
    speaking = {address.name: address for address in opened_listeners(settings) if address.speaks_tls}
    return _listener_tls(settings, speaking[name]).context


def _listener_tls(settings: BrokerSettings, address: ListenerAddress) -> ListenerTls:
    made_of = _made_of(settings, address)
    stores = _stores(settings, address.name)
    verify = _VERIFY[asks_for_certificates(settings, address)]
    try:
        context = server_context(stores.keys, stores.trust, verify, stores.agreement)
    except ssl.SSLError as error:
        raise StoreError(f"the key store of listener {address.name} cannot be used: {error.reason or error}") from None
    rules = read_rules(settings_for(settings, address.name).ssl_principal_mapping_rules)
    return ListenerTls(context, stores, rules, made_of)


def _stores(settings: BrokerSettings, listener: str) -> Stores:
    own = settings_for(settings, listener)
    trust = _trust_settings(settings, own, listener)
    agreement = Agreement(
        own.ssl_enabled_protocols, read_suites(own.ssl_cipher_suites) if own.ssl_cipher_suites else None
    )
    if not agreement.spoken:
        raise StoreError("ssl.cipher.suites: none of them is for a version of TLS that ssl.enabled.protocols allows")
    return Stores(
        load_key_store(_key_settings(settings, own, listener)),
        load_trust_store(trust) if trust.is_given else None,
        agreement,
    )


def _key_settings(settings: BrokerSettings, own: BrokerSettings, listener: str) -> StoreSettings:
    return StoreSettings(
        own.ssl_keystore_location or None,
        own.ssl_keystore_password or None,
        own.ssl_keystore_type,
        own.ssl_key_password or None,
        own.ssl_keystore_key or None,
        own.ssl_keystore_certificate_chain or None,
        _prefix(settings, listener, "ssl.keystore.location", "ssl.keystore.key"),
    )


def _trust_settings(settings: BrokerSettings, own: BrokerSettings, listener: str) -> StoreSettings:
    return StoreSettings(
        own.ssl_truststore_location or None,
        own.ssl_truststore_password or None,
        own.ssl_truststore_type,
        certificates=own.ssl_truststore_certificates or None,
        prefix=_prefix(settings, listener, "ssl.truststore.location", "ssl.truststore.certificates"),
    )


def _prefix(settings: BrokerSettings, listener: str, *keys: str) -> str:
    """In messages settings are called what the user called them."""
    given = any(own_value(settings, listener, key) is not None for key in keys)
    return f"{PREFIX}{listener.lower()}." if given else ""


def _made_of(settings: BrokerSettings, address: ListenerAddress) -> tuple[object, ...]:
    own = settings_for(settings, address.name)
    files = (own.ssl_keystore_location, own.ssl_truststore_location)
    return (
        _key_settings(settings, own, address.name),
        _trust_settings(settings, own, address.name),
        asks_for_certificates(settings, address),
        own.ssl_enabled_protocols,
        own.ssl_cipher_suites,
        *(_written_at(path) for path in files if path),
    )


def _written_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}") from None


def _check_replacement(name: str, settings: BrokerSettings, old: Stores, new: Stores) -> None:
    """Clients that took the old certificate for this broker's must take the new one for it, too."""
    own = settings_for(settings, name)
    before, after = old.keys.certificate, new.keys.certificate
    if before.subject != after.subject and not own.ssl_allow_dn_changes:
        raise StoreError(
            f"the new key store of listener {name} is for {distinguished_name(after.subject)}, the old one for "
            f"{distinguished_name(before.subject)}; ssl.allow.dn.changes=true allows that"
        )
    lost = alternative_names(before) - alternative_names(after)
    if lost and not own.ssl_allow_san_changes:
        raise StoreError(
            f"the new certificate of listener {name} lacks alternative names of the old one: "
            f"{', '.join(sorted(lost))}; ssl.allow.san.changes=true allows that"
        )
    if (old.trust is None) != (new.trust is None):
        raise StoreError(
            f"Listener {name} {'has no' if old.trust is None else 'has a'} trust store; while the broker runs one can "
            "be replaced, not added or removed"
        )


def _check_among_brokers(settings: BrokerSettings, listeners: Mapping[str, ListenerTls]) -> None:
    """Other brokers have the same settings: one that would not take itself for a broker is better told now."""
    between = inter_broker_listener(settings)
    if not settings.zookeeper_connect or between not in listeners:
        return
    tls = listeners[between]
    client = client_context(tls.stores.keys, tls.stores.trust, tls.stores.agreement, check_hostname=False)
    try:
        try_handshake(tls.context, client)
    except ssl.SSLError as error:
        why = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else error.reason or error
        raise StoreError(
            f"Listener {between} is for traffic between brokers, and its trust store does not believe its key store: "
            f"{why}. Put the authority that signed the certificate into ssl.truststore.location"
        ) from None


def _tell(name: str, tls: ListenerTls) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for certificate in tls.stores.keys.chain:
        problem = lifetime_problem(certificate, now)
        if problem is not None:
            logger.warning("Listener %s: %s; put a new one into its key store", name, problem)
    suites = tls.stores.agreement.suites
    if suites is not None and suites.more_than_asked:
        logger.warning(
            "Listener %s: ssl.cipher.suites leaves out %s, which Python's OpenSSL offers with the others of TLS 1.3 "
            "all the same; ssl.enabled.protocols=TLSv1.2 would keep TLS 1.3 out",
            name, ", ".join(suites.more_than_asked),
        )  # fmt: skip
