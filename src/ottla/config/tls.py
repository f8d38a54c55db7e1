"""Settings of TLS: stores, what may be agreed on, and who the owner of a certificate is.

All of them may differ between listeners (per_listener.py).
"""

import dataclasses

from ottla.config.setting import SettingType, setting
from ottla.tls.ciphers import UnknownSuite, read_suites
from ottla.tls.principal_mapping import BadRules, read_rules

TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
TLS_PROTOCOLS = frozenset({"SSL", "SASL_SSL"})
ENDPOINT_ALGORITHMS = ("https", "")
_PASSWORD = SettingType.PASSWORD
_STRING = SettingType.STRING


def _versions_problem(versions: tuple[str, ...]) -> str | None:
    other = [version for version in versions if version not in TLS_VERSIONS]
    if other:
        return f"{', '.join(other)} is not spoken here, because it is not safe; {' and '.join(TLS_VERSIONS)} are"
    return None if versions else f"give at least one of {', '.join(TLS_VERSIONS)}"


def _suites_problem(names: tuple[str, ...]) -> str | None:
    try:
        read_suites(names)
    except UnknownSuite as error:
        return (
            f"OpenSSL has no cipher suite {error}; names are those of the standards, such as "
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
        )
    return None


def _algorithm_problem(name: str) -> str | None:
    return None if name.lower() in ENDPOINT_ALGORITHMS else "it is https, or empty for no check"


def _rules_problem(text: str) -> str | None:
    try:
        read_rules(text)
    except BadRules as error:
        return str(error)
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TlsSettings:
    """Of listeners that speak SSL or SASL_SSL, and of connections to other brokers over them."""

    ssl_keystore_location: str | None = setting(
        None,
        type=_STRING,
        per="listener",
        dynamic="per-listener",
        doc="File with the private key and the certificate of this broker, and those that signed it: PEM or PKCS12; "
        "what it is its content says. JKS stores are refused with the line that converts them.",
    )
    ssl_keystore_password: str | None = setting(
        None, type=_PASSWORD, per="listener", dynamic="per-listener", doc="Password of a PKCS12 key store."
    )
    ssl_keystore_type: str = setting(
        "JKS",
        per="listener",
        dynamic="per-listener",
        doc="PEM or PKCS12; a file that is the other one is refused. JKS, the default, takes either, as in Java.",
    )
    ssl_key_password: str | None = setting(
        None, type=_PASSWORD, per="listener", dynamic="per-listener", doc="Password of a private key in PEM."
    )
    ssl_keystore_key: str | None = setting(
        None, type=_PASSWORD, per="listener", dynamic="per-listener", doc="The private key itself, in PEM (PKCS#8)."
    )
    ssl_keystore_certificate_chain: str | None = setting(
        None,
        type=_PASSWORD,
        per="listener",
        dynamic="per-listener",
        doc="The certificate that belongs to ssl.keystore.key and those that signed it, in PEM.",
    )
    ssl_truststore_location: str | None = setting(
        None,
        type=_STRING,
        per="listener",
        dynamic="per-listener",
        doc="File with the certificates of the authorities to believe, in PEM or PKCS12. Without any the system's are "
        "believed.",
    )
    ssl_truststore_password: str | None = setting(
        None, type=_PASSWORD, per="listener", dynamic="per-listener", doc="Password of a PKCS12 trust store."
    )
    ssl_truststore_type: str = setting(
        "JKS", per="listener", dynamic="per-listener", doc="As ssl.keystore.type, of the trust store."
    )
    ssl_truststore_certificates: str | None = setting(
        None,
        type=_PASSWORD,
        per="listener",
        dynamic="per-listener",
        doc="The certificates of the authorities to believe themselves, in PEM.",
    )
    ssl_client_auth: str = setting(
        "none",
        choices=("none", "requested", "required"),
        per="listener",
        dynamic="per-listener",
        doc="Whether clients show a certificate. On a SASL_SSL listener it counts only when given for that listener, "
        "and who the client is SASL says all the same.",
    )
    ssl_enabled_protocols: tuple[str, ...] = setting(
        TLS_VERSIONS, per="listener", dynamic="per-listener", check=_versions_problem, doc="Versions of TLS to speak."
    )
    ssl_cipher_suites: tuple[str, ...] = setting(
        (),
        per="listener",
        dynamic="per-listener",
        check=_suites_problem,
        doc="Cipher suites to agree on, by their names in the standards; without any those that OpenSSL thinks best. A "
        "version of TLS that none of them is for is not spoken. Those of TLS 1.3 are offered all or none.",
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "https",
        per="listener",
        dynamic="per-listener",
        check=_algorithm_problem,
        doc="As a client of other brokers: https wants the host's name in their certificates, empty does not.",
    )
    ssl_principal_mapping_rules: str = setting(
        "DEFAULT",
        per="listener",
        check=_rules_problem,
        doc="What the owner of a certificate is called: RULE:pattern/replacement/ with L or U behind it for lower or "
        "upper case, or DEFAULT for the whole distinguished name. The first rule that matches counts; a client for "
        "whom none does is refused.",
    )
    ssl_allow_dn_changes: bool = setting(
        False,
        per="listener",
        doc="Whether a key store that is replaced at run time may have another distinguished name.",
    )
    ssl_allow_san_changes: bool = setting(
        False,
        per="listener",
        doc="Whether a key store that is replaced at run time may lack alternative names that the old one has.",
    )
