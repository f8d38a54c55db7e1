"""How this broker talks to others: with the settings of the listener that brokers use among themselves."""

from typing import TYPE_CHECKING

from ottla.client.kerberos import Kerberos
from ottla.client.security import PLAINTEXT, OAuth, Sasl, Security, Tls
from ottla.config.broker import BrokerSettings
from ottla.config.listeners import inter_broker_listener, opened_listeners
from ottla.config.per_listener import settings_for
from ottla.config.sasl_listeners import own_credentials

if TYPE_CHECKING:
    from ottla.broker.security.tls.listeners import ListenerTls, TlsListeners


def inter_broker_security(settings: BrokerSettings, tls: "TlsListeners | None") -> Security:
    """Called for every new connection, so that stores that were replaced count at once."""
    name = inter_broker_listener(settings)
    address = next(one for one in opened_listeners(settings) if one.name == name)
    security = PLAINTEXT
    if address.speaks_tls:
        assert tls is not None
        security = security._replace(tls=_tls(settings, name, tls[name]))
    if address.speaks_sasl:
        own = own_credentials(settings)
        tokens = own.tokens
        oauth = None if tokens is None else OAuth(None, *tokens)
        key = own.kerberos
        kerberos = None if key is None else Kerberos(key.service or "", key.principal, key.keytab)
        sasl = Sasl(own.mechanism, own.username, own.password, oauth, kerberos=kerberos)
        security = security._replace(sasl=sasl)
    return security


def _tls(settings: BrokerSettings, listener: str, tls: "ListenerTls") -> Tls:
    stores = tls.stores
    suites = stores.agreement.suites
    return Tls(
        ca_pem=stores.trust.pem if stores.trust is not None else None,
        certificate_pem=stores.keys.chain_pem,
        key_pem=stores.keys.key_pem,
        ciphers=suites.tls_1_2 if suites is not None else None,
        check_hostname=bool(settings_for(settings, listener).ssl_endpoint_identification_algorithm),
        versions=stores.agreement.spoken,
    )
