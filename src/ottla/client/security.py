"""How a client proves who it is and makes sure whom it talks to: TLS and SASL, from settings by their Kafka names."""

import functools
import importlib.util
import ssl
from collections.abc import Mapping
from typing import NamedTuple

from ottla.client import security_names
from ottla.client.errors import InvalidSetting
from ottla.client.kerberos import Kerberos
from ottla.tls.keys_in_memory import load_keys
from ottla.tls.trusting import trusting

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
GSSAPI = "GSSAPI"
SCRAM_MECHANISMS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER, GSSAPI)

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
OAUTH_METHODS = ("default", "oidc")

_TLS = frozenset({"SSL", "SASL_SSL"})
_SASL = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

SECURITY_SETTINGS = frozenset(
    {
        "security.protocol",
        "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.cipher.suites",
        "ssl.enabled.protocols", "ssl.endpoint.identification.algorithm", "ssl.key.location", "ssl.key.password",
        "ssl.key.pem", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location",
        "ssl.keystore.password", "ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location",
        "ssl.truststore.password", "ssl.truststore.type",
        "enable.ssl.certificate.verification",
        "sasl.jaas.config", "sasl.kerberos.keytab", "sasl.kerberos.principal", "sasl.kerberos.service.name",
        "sasl.mechanism", "sasl.mechanisms", "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.secret", "sasl.oauthbearer.method", "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token", "sasl.oauthbearer.token.endpoint.url", "sasl.password", "sasl.username",
    }
)  # fmt: skip


class Tls(NamedTuple):
    """What the certificates are. Files are read where the connection is made: on an executor, its own."""

    ca_location: str | None = None
    ca_pem: str | None = None
    certificate_location: str | None = None
    certificate_pem: str | None = None
    key_location: str | None = None
    key_pem: str | None = None
    key_password: str | None = None
    ciphers: str | None = None
    verify: bool = True
    check_hostname: bool = True
    versions: tuple[str, ...] = TLS_VERSIONS

    def __repr__(self) -> str:
        return f"Tls(ca={self.ca_location}, certificate={self.certificate_location})"  # no secrets


class OAuth(NamedTuple):
    """Where a token comes from: it is given, or an endpoint hands one out for a client's id and secret."""

    token: str | None = None
    endpoint_url: str | None = None
    client_id: str = ""
    client_secret: str = ""
    scope: str | None = None

    def __repr__(self) -> str:
        return f"OAuth(endpoint_url={self.endpoint_url})"  # no secrets


class Sasl(NamedTuple):
    mechanism: str
    username: str = ""
    password: str = ""
    oauth: OAuth | None = None
    by_token: bool = False
    """Name and password are a delegation token's."""
    kerberos: Kerberos | None = None

    def __repr__(self) -> str:
        return f"Sasl(mechanism={self.mechanism})"  # no secrets


class Security(NamedTuple):
    """All of it, as a value: it can be compared, sent to another process, and shown without secrets."""

    tls: Tls | None = None
    sasl: Sasl | None = None


PLAINTEXT = Security()


def parse_security(settings: Mapping[str, str], *, prefix: str = "") -> Security:
    """The security among a client's settings. `prefix` stands before the names in messages."""
    protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise InvalidSetting(f"{prefix}security.protocol is one of {', '.join(_PROTOCOLS)}, not `{protocol}`")
    _check_needed(settings, protocol, prefix)
    named = security_names.translate(
        {
            name: value
            for name, value in settings.items()
            if security_names.is_security(name) and name != "ssl.enabled.protocols"
        }
    )
    if "ssl.keystore.location" in named:
        named |= _from_pkcs12(named, prefix)
    sasl = _sasl(named, prefix) if protocol in _SASL else None
    if sasl is not None and security_names.shows_a_token(settings.get("sasl.jaas.config", "")):
        sasl = sasl._replace(by_token=True)
    return Security(_tls(settings, named, prefix) if protocol in _TLS else None, sasl)


def _from_pkcs12(named: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Key and certificate of a store that OpenSSL cannot load itself."""
    from ottla.tls.stores import StoreError, StoreSettings, load_key_store  # noqa: PLC0415 (slow to import)

    try:
        keys = load_key_store(
            StoreSettings(named["ssl.keystore.location"], named.get("ssl.keystore.password"), "PKCS12", prefix=prefix)
        )
    except StoreError as error:
        raise InvalidSetting(str(error)) from None
    return {"ssl.certificate.pem": keys.chain_pem, "ssl.key.pem": keys.key_pem}


def _check_needed(settings: Mapping[str, str], protocol: str, prefix: str) -> None:
    """A certificate or a password without the protocol that uses it is a mistake, and an unsafe one."""
    for name in settings:
        unused = (name.startswith(("ssl.", "enable.ssl.")) and protocol not in _TLS) or (
            name.startswith("sasl.") and protocol not in _SASL
        )
        if unused:
            better = "SSL or SASL_SSL" if "ssl." in name else "SASL_SSL or SASL_PLAINTEXT"
            raise InvalidSetting(f"{prefix}{name} needs {prefix}security.protocol={better}, and it is {protocol}")


def _tls(settings: Mapping[str, str], named: Mapping[str, str], prefix: str) -> Tls:
    algorithm = named.get("ssl.endpoint.identification.algorithm", "https")
    if algorithm not in ("https", "none"):
        raise InvalidSetting(f"{prefix}ssl.endpoint.identification.algorithm is https or none, not `{algorithm}`")
    verify = settings.get("enable.ssl.certificate.verification", "true").strip().lower()
    if verify not in ("true", "false"):
        raise InvalidSetting(f"{prefix}enable.ssl.certificate.verification is true or false, not `{verify}`")
    enabled = [name.strip() for name in settings.get("ssl.enabled.protocols", ",".join(TLS_VERSIONS)).split(",")]
    versions = tuple(name for name in TLS_VERSIONS if name in enabled)
    if not versions:
        raise InvalidSetting(f"{prefix}ssl.enabled.protocols: {' and '.join(TLS_VERSIONS)} can be spoken here")
    tls = Tls(
        ca_location=named.get("ssl.ca.location") or None,
        ca_pem=named.get("ssl.ca.pem"),
        certificate_location=named.get("ssl.certificate.location"),
        certificate_pem=named.get("ssl.certificate.pem"),
        key_location=named.get("ssl.key.location"),
        key_pem=named.get("ssl.key.pem"),
        key_password=named.get("ssl.key.password"),
        ciphers=named.get("ssl.cipher.suites"),
        verify=verify == "true",
        check_hostname=algorithm == "https" and verify == "true",
        versions=versions,
    )
    has_certificate = tls.certificate_location or tls.certificate_pem
    has_key = tls.key_location or tls.key_pem
    if has_key and not has_certificate:
        raise InvalidSetting(f"{prefix}ssl.key.location needs the certificate too: {prefix}ssl.certificate.location")
    return tls


def _sasl(named: Mapping[str, str], prefix: str) -> Sasl:
    mechanism = (named.get("sasl.mechanism") or named.get("sasl.mechanisms") or "").strip().upper()
    if not mechanism:
        raise InvalidSetting(f"{prefix}sasl.mechanism is missing: one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise InvalidSetting(f"{prefix}sasl.mechanism is one of {', '.join(MECHANISMS)}, not `{mechanism}`")
    if mechanism == OAUTHBEARER:
        return Sasl(mechanism, oauth=_oauth(named, prefix))
    if mechanism == GSSAPI:
        keytab, principal = named.get("sasl.kerberos.keytab"), named.get("sasl.kerberos.principal")
        if keytab and not principal:
            raise InvalidSetting(f"{prefix}sasl.kerberos.keytab needs {prefix}sasl.kerberos.principal: whose key it is")
        if importlib.util.find_spec("gssapi") is None:
            raise InvalidSetting(f"{prefix}sasl.mechanism=GSSAPI needs a library: pip install 'ottla[gssapi]'")
        service = named.get("sasl.kerberos.service.name") or "kafka"
        return Sasl(mechanism, kerberos=Kerberos(service, principal, keytab))
    username, password = named.get("sasl.username"), named.get("sasl.password")
    if username is None or password is None:
        raise InvalidSetting(
            f"{prefix}sasl.mechanism={mechanism} needs {prefix}sasl.username and {prefix}sasl.password, or "
            f"{prefix}sasl.jaas.config with both"
        )
    return Sasl(mechanism, username, password)


def _oauth(named: Mapping[str, str], prefix: str) -> OAuth:
    method = named.get("sasl.oauthbearer.method", "oidc").strip().lower()
    if method not in OAUTH_METHODS:
        raise InvalidSetting(f"{prefix}sasl.oauthbearer.method is one of {', '.join(OAUTH_METHODS)}, not `{method}`")
    token, url = named.get("sasl.oauthbearer.token"), named.get("sasl.oauthbearer.token.endpoint.url")
    if (token is None) == (url is None):
        raise InvalidSetting(
            f"{prefix}sasl.mechanism=OAUTHBEARER needs a token: {prefix}sasl.oauthbearer.token, or "
            f"{prefix}sasl.oauthbearer.token.endpoint.url with a client's id and secret; one of the two"
        )
    if token is not None:
        return OAuth(token=token)
    client_id = named.get("sasl.oauthbearer.client.id") or named.get("sasl.oauthbearer.client.credentials.client.id")
    secret = named.get("sasl.oauthbearer.client.secret") or named.get(
        "sasl.oauthbearer.client.credentials.client.secret"
    )
    if not client_id or not secret:
        raise InvalidSetting(
            f"{prefix}sasl.oauthbearer.token.endpoint.url needs {prefix}sasl.oauthbearer.client.id and "
            f"{prefix}sasl.oauthbearer.client.secret"
        )
    assert url is not None
    if not url.startswith(("https://", "http://")):
        raise InvalidSetting(f"{prefix}sasl.oauthbearer.token.endpoint.url begins with https://, unlike `{url}`")
    return OAuth(None, url, client_id, secret, named.get("sasl.oauthbearer.scope"))


_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


@functools.lru_cache(maxsize=16)
def ssl_context(tls: Tls) -> ssl.SSLContext:
    """The context of these certificates. Raises InvalidSetting for files that cannot be read."""
    try:
        context = trusting(tls.ca_location, tls.ca_pem)
        context.check_hostname = tls.check_hostname
        context.verify_mode = ssl.CERT_REQUIRED if tls.verify else ssl.CERT_NONE
        context.minimum_version = _VERSIONS[tls.versions[0]]
        context.maximum_version = _VERSIONS[tls.versions[-1]]
        if tls.ciphers is not None:
            context.set_ciphers(tls.ciphers)
        _load_certificate(context, tls)
    except OSError as error:  # ssl.SSLError is one
        raise InvalidSetting(f"the certificates cannot be used ({tls}): {error}") from error
    return context


def _load_certificate(context: ssl.SSLContext, tls: Tls) -> None:
    password = tls.key_password or ""  # without one, OpenSSL would ask at the terminal
    if tls.certificate_location is not None:
        context.load_cert_chain(tls.certificate_location, tls.key_location, lambda: password)
    elif tls.certificate_pem is not None:
        load_keys(context, tls.key_pem or "", tls.certificate_pem, password)
