"""SASL as a listener has it: its mechanisms, each with the settings and the JAAS line that count for it."""

import importlib.util
import os
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.broker import BrokerSettings
from ottla.config.jaas import JaasError, LoginModule, parse_file, parse_line
from ottla.config.listeners import ListenerAddress, inter_broker_listener, opened_listeners
from ottla.config.per_listener import own_value, settings_for
from ottla.config.sasl import (
    GSSAPI,
    LOGIN_MODULES,
    NO_GSSAPI,
    OAUTHBEARER,
    PLAIN,
    SCRAM,
    SERVED_MECHANISMS,
    Users,
    jaas_file,
    plain_users,
)
from ottla.config.setting import ConfigError

SECTION = "KafkaServer"


class TokenSource(NamedTuple):
    """Where a broker gets the token from with which it logs in to others."""

    url: str
    client_id: str
    client_secret: str
    scope: str | None

    def __repr__(self) -> str:
        return f"TokenSource({self.url}, {self.client_id})"  # no secrets


class KerberosKey(NamedTuple):
    """Which key a broker has, to check tickets with and to get its own."""

    keytab: str | None
    principal: str | None
    service: str | None


class Credentials(NamedTuple):
    """With what a broker logs in to others."""

    mechanism: str
    username: str
    password: str
    tokens: TokenSource | None = None
    """Instead of name and password, with OAUTHBEARER."""
    kerberos: KerberosKey | None = None
    """The same with GSSAPI."""

    def __repr__(self) -> str:
        return f"Credentials({self.mechanism}, {self.username})"  # no secrets


def mechanisms_of(settings: BrokerSettings, listener: str) -> tuple[str, ...]:
    return tuple(name.upper() for name in settings_for(settings, listener).sasl_enabled_mechanisms)


def login_module(settings: BrokerSettings, listener: str, mechanism: str) -> LoginModule | None:
    """The JAAS line of a mechanism of a listener: of the settings, else of the JAAS file. ConfigError."""
    name = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    try:
        own = own_value(settings, listener, "sasl.jaas.config", mechanism)
        if own is not None:
            return _checked(parse_line(str(own)), mechanism, name)
        return _from_file(listener, mechanism)
    except JaasError as error:
        raise ConfigError([f"{name}: {error}"]) from None


def users_of(settings: BrokerSettings, listener: str) -> Users:
    module = login_module(settings, listener, PLAIN)
    return Users({}) if module is None else plain_users(module)


def own_credentials(settings: BrokerSettings) -> Credentials:
    """With what this broker logs in to others, on the listener that they use among themselves. ConfigError."""
    listener = next(each for each in opened_listeners(settings) if each.name == inter_broker_listener(settings))
    mechanism = settings.sasl_mechanism_inter_broker_protocol.upper()
    where = f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config"
    if mechanism == OAUTHBEARER:
        return Credentials(mechanism, "", "", _token_source(settings, listener.name))
    if mechanism == GSSAPI:
        key = kerberos_key(settings, listener.name)
        if key.service is None:
            raise ConfigError(["sasl.kerberos.service.name: GSSAPI between brokers needs it, as in kafka/host@REALM"])
        return Credentials(mechanism, "", "", kerberos=key)
    module = login_module(settings, listener.name, mechanism)
    username, password = (None, None) if module is None else map(module.options.get, ("username", "password"))
    if not username or not password:
        raise ConfigError(
            [f"{where}: brokers log in to each other on {listener.name}, and no username and password is given for it"]
        )
    return Credentials(mechanism, username, password)


def kerberos_key(settings: BrokerSettings, listener: str) -> KerberosKey:
    """Of the Krb5LoginModule's line. ConfigError."""
    module = login_module(settings, listener, GSSAPI)
    options: Mapping[str, str] = {} if module is None else module.options
    service = settings.sasl_kerberos_service_name or options.get("serviceName")
    return KerberosKey(options.get("keyTab"), options.get("principal"), service)


def has_gssapi() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("gssapi") is not None


def _token_source(settings: BrokerSettings, listener: str) -> TokenSource:
    own = settings_for(settings, listener, OAUTHBEARER)
    module = login_module(settings, listener, OAUTHBEARER)
    options: Mapping[str, str] = {} if module is None else module.options
    client_id = own.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = own.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if own.sasl_oauthbearer_token_endpoint_url is None or not client_id or not secret:
        problem = (
            f"OAUTHBEARER on {listener} needs sasl.oauthbearer.token.endpoint.url, and a client's id and secret: "
            "sasl.oauthbearer.client.credentials.client.id and .client.secret, or clientId and clientSecret in the "
            "JAAS line"
        )
        raise ConfigError([f"sasl.mechanism.inter.broker.protocol: {problem}"])
    scope = own.sasl_oauthbearer_scope or options.get("scope")
    return TokenSource(own.sasl_oauthbearer_token_endpoint_url, client_id, secret, scope)


def sasl_problems(settings: BrokerSettings) -> list[str]:
    """Everything wrong with the listeners that speak SASL, in words."""
    try:
        speaking = [listener for listener in opened_listeners(settings) if listener.speaks_sasl]
    except ConfigError:
        return []  # told with the listeners
    problems = [problem for listener in speaking for problem in _listener_problems(settings, listener)]
    if settings.sasl_jaas_config is not None:
        problems.append(
            "sasl.jaas.config: on a broker it counts with the prefix of a listener and a mechanism only, as in "
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"
        )
    return problems or _inter_broker_problems(settings)


def _inter_broker_problems(settings: BrokerSettings) -> list[str]:
    between = inter_broker_listener(settings)
    listener = next((each for each in opened_listeners(settings) if each.name == between), None)
    if listener is None or not listener.speaks_sasl or not settings.zookeeper_connect:
        return []  # a broker on its own calls nobody
    mechanism = settings.sasl_mechanism_inter_broker_protocol.upper()
    if mechanism == GSSAPI and not has_gssapi():
        return [f"sasl.mechanism.inter.broker.protocol: {NO_GSSAPI}"]
    if mechanism not in mechanisms_of(settings, between):
        problem = f"{mechanism} is not among sasl.enabled.mechanisms of {between}, which brokers use among themselves"
        return [f"sasl.mechanism.inter.broker.protocol: {problem}"]
    try:
        own_credentials(settings)
    except ConfigError as error:
        return list(error.problems)
    return []


def _listener_problems(settings: BrokerSettings, listener: ListenerAddress) -> list[str]:
    problems = []
    for mechanism in mechanisms_of(settings, listener.name):
        try:
            problems += _mechanism_problems(settings, listener, mechanism)
        except ConfigError as error:
            problems += error.problems
    if not mechanisms_of(settings, listener.name):
        problems.append(f"sasl.enabled.mechanisms: listener {listener.name} speaks SASL and has none")
    return problems


def _mechanism_problems(settings: BrokerSettings, listener: ListenerAddress, mechanism: str) -> list[str]:
    if mechanism == GSSAPI:
        return _gssapi_problems(settings, listener)
    if mechanism not in SERVED_MECHANISMS:
        return [f"sasl.enabled.mechanisms: {mechanism} is not one of {', '.join(SERVED_MECHANISMS)}"]
    if mechanism == PLAIN and not users_of(settings, listener.name).passwords:
        where = f"listener.name.{listener.name.lower()}.plain.sasl.jaas.config"
        return [f'{where}: PLAIN has no users; give them as user_NAME="password" behind the login module']
    if mechanism in SCRAM:
        login_module(settings, listener.name, mechanism)
    own = settings_for(settings, listener.name, mechanism)
    if mechanism == OAUTHBEARER:
        unsafe = own.sasl_oauthbearer_unsafe_accept_unsigned_tokens
        if own.sasl_oauthbearer_jwks_endpoint_url is None and not unsafe:
            return [
                "sasl.oauthbearer.jwks.endpoint.url: OAUTHBEARER needs the keys that sign tokens, by https or a file"
            ]
        if unsafe and own.sasl_oauthbearer_jwks_endpoint_url is not None:
            problem = (
                "tokens are either signed with the keys of sasl.oauthbearer.jwks.endpoint.url or not signed at all"
            )
            return [f"sasl.oauthbearer.unsafe.accept.unsigned.tokens: {problem}; take one of the two out"]
        if unsafe and not listener.is_local:
            problem = f"anybody could be anybody, so it is for 127.0.0.1 only, and {listener} is open to other machines"
            return [f"sasl.oauthbearer.unsafe.accept.unsigned.tokens: {problem}"]
    return []


def _gssapi_problems(settings: BrokerSettings, listener: ListenerAddress) -> list[str]:
    if not has_gssapi():
        return [f"sasl.enabled.mechanisms: listener {listener.name}: {NO_GSSAPI}"]
    key = kerberos_key(settings, listener.name)
    if key.keytab is None or key.principal is None:
        where = f"listener.name.{listener.name.lower()}.gssapi.sasl.jaas.config"
        return [f"{where}: GSSAPI (Kerberos) needs keyTab and principal of this broker behind Krb5LoginModule"]
    return []


def _from_file(listener: str, mechanism: str) -> LoginModule | None:
    path = jaas_file(os.environ)
    if path is None:
        return None
    try:
        sections = parse_file(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from None
    except JaasError as error:
        raise ConfigError([f"{path}: {error}"]) from None
    for name in (f"{listener.lower()}.{SECTION}", SECTION):
        for module in sections.get(name, ()):
            if module.short_name == LOGIN_MODULES.get(mechanism):
                return module
    return None


def _checked(module: LoginModule, mechanism: str, name: str) -> LoginModule:
    expected = LOGIN_MODULES.get(mechanism)
    if expected is not None and module.short_name != expected:
        raise ConfigError([f"{name}: the login module of {mechanism} is {expected}, not {module.short_name}"])
    return module
