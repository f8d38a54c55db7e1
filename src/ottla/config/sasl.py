"""Settings of SASL: which mechanisms a listener has, whom they know, and how long a login lasts.

Most may differ between listeners, and some between mechanisms of a listener (per_listener.py).
"""

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ottla.config.jaas import JaasError, LoginModule, parse_line
from ottla.config.kerberos_rules import BadRule, read_rules
from ottla.config.setting import LONG_MAX, SettingType, setting

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
GSSAPI = "GSSAPI"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SERVED_MECHANISMS = (PLAIN, *SCRAM, OAUTHBEARER)
"""Those that need nothing else; GSSAPI needs a library of the system's."""
NO_GSSAPI = (
    "GSSAPI (Kerberos) needs a library that is not installed, pip install 'ottla[gssapi]'; "
    f"without it there are {', '.join(SERVED_MECHANISMS)}"
)
LOGIN_MODULES = {
    PLAIN: "PlainLoginModule",
    **dict.fromkeys(SCRAM, "ScramLoginModule"),
    OAUTHBEARER: "OAuthBearerLoginModule",
    GSSAPI: "Krb5LoginModule",
}
VALIDATORS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
_PASSWORD, _STRING, _LONG = SettingType.PASSWORD, SettingType.STRING, SettingType.LONG
_LOCAL_HTTP = re.compile(r"http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/")


def _jaas_problem(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        module = parse_line(text)
    except JaasError as error:
        return str(error)
    if module.short_name not in set(LOGIN_MODULES.values()):
        return f"{module.name} is no login module that is known here: {', '.join(sorted(set(LOGIN_MODULES.values())))}"
    return None


def _rules_problem(rules: tuple[str, ...]) -> str | None:
    try:
        read_rules(rules)
    except BadRule as error:
        return str(error)
    return None


def _handler_problem(name: str | None) -> str | None:
    if not name or name in VALIDATORS:
        return None
    return f"classes of the JVM cannot be loaded here; tokens are always checked as by {VALIDATORS[0]}"


def _jwks_problem(url: str | None) -> str | None:
    if url is None or url.startswith(("https://", "file:/")) or _LOCAL_HTTP.match(url):
        return None
    return "it is an https:// or file:// address; keys that come over http could be anybody's"


def _token_endpoint_problem(url: str | None) -> str | None:
    if url is None or url.startswith("https://") or _LOCAL_HTTP.match(url):
        return None
    return "it is an https:// address; over http anybody could read the client's secret, and the token"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SaslSettings:
    """Of listeners that speak SASL_PLAINTEXT or SASL_SSL, and of connections to other brokers over them."""

    sasl_enabled_mechanisms: tuple[str, ...] = setting(
        ("GSSAPI",),
        per="listener",
        doc=f"Mechanisms that clients may log in with: any of {', '.join(SERVED_MECHANISMS)}, and GSSAPI, Kafka's "
        "default, where its library is installed (ottla[gssapi]).",
    )
    sasl_mechanism_inter_broker_protocol: str = setting(
        "GSSAPI", doc="Mechanism with which brokers log in to each other, where their listener speaks SASL."
    )
    sasl_jaas_config: str | None = setting(
        None,
        type=_PASSWORD,
        per="mechanism",
        check=_jaas_problem,
        doc='Users of PLAIN (user_NAME="password"), and name and password with which this broker logs in to others, '
        "as a JAAS line. On a broker it counts with the prefix of a listener and a mechanism only: "
        "listener.name.{listener}.{mechanism}.sasl.jaas.config.",
    )
    sasl_kerberos_service_name: str | None = setting(
        None,
        type=_STRING,
        doc="First part of the principals of all brokers, which they ask each other's tickets for; serviceName in the "
        "JAAS line says the same.",
    )
    sasl_kerberos_principal_to_local_rules: tuple[str, ...] = setting(
        ("DEFAULT",),
        check=_rules_problem,
        doc="What the user of a Kerberos principal is called: RULE:[n:format], behind it if wanted a pattern in "
        "parentheses, s/from/to/ with g, and L or U; or DEFAULT for the first component of principals of the broker's "
        "realm. The first rule that has a name counts; a client for whom none does is refused.",
    )
    sasl_server_callback_handler_class: str | None = setting(
        None,
        type=SettingType.CLASS,
        per="mechanism",
        check=_handler_problem,
        doc="Only the class that checks signed tokens may be named; it has no effect, they always are.",
    )
    sasl_server_max_receive_size: int = setting(
        524_288, at_least=0, doc="Largest request or token of a client that has not logged in yet."
    )
    connections_max_reauth_ms: int = setting(
        0,
        type=_LONG,
        at_least=0,
        per="mechanism",
        doc="How long a login lasts; who has not logged in again by then is disconnected at the next request. "
        "0: as long as the connection, or until what the client showed expires.",
    )
    connection_failed_authentication_delay_ms: int = setting(
        100,
        at_least=0,
        doc="How long a client whose login failed waits for the answer and the end of its connection.",
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        None,
        type=_STRING,
        per="mechanism",
        check=_jwks_problem,
        doc="Where the keys are that sign tokens (JWKS): an https address or a file.",
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        3_600_000, type=_LONG, at_least=1, per="mechanism", doc="How often the keys are read again."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        100, type=_LONG, at_least=1, per="mechanism", doc="First pause after keys could not be read; it doubles."
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        10_000, type=_LONG, at_least=1, per="mechanism", doc="Longest pause after keys could not be read."
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        None, type=_STRING, per="mechanism", doc="Who has to have issued a token (iss); without it anybody with a key."
    )
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        (), per="mechanism", doc="For whom a token may be (aud); without it only tokens that name nobody are accepted."
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        30, at_least=0, per="mechanism", doc="How far the issuer's clock and this one may be apart."
    )
    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        None,
        type=_STRING,
        per="mechanism",
        check=_token_endpoint_problem,
        doc="Where this broker gets the tokens with which it logs in to others, for a client's id and secret: an https "
        "address.",
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        None, type=_STRING, per="mechanism", doc="The client's id for it; clientId in the JAAS line says the same."
    )
    sasl_oauthbearer_client_credentials_client_secret: str | None = setting(
        None, type=_PASSWORD, per="mechanism", doc="The client's secret for it; clientSecret in the JAAS line as well."
    )
    sasl_oauthbearer_scope: str | None = setting(
        None, type=_STRING, per="mechanism", doc="The scope to ask for; scope in the JAAS line says the same."
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        "scope", per="mechanism", doc="The claim of a token that has its scope; it has to be text or a list of texts."
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        "sub", per="mechanism", doc="The claim of a token that has the name of its user."
    )
    sasl_oauthbearer_unsafe_accept_unsigned_tokens: bool = setting(
        False,
        per="mechanism",
        kafka_default=None,
        differs="Kafka has no such setting: it accepts unsigned tokens unless a class that checks them is named",
        doc="ANYBODY CAN BE ANYBODY: accepts tokens that nobody has signed (alg none). For trying things out on one "
        "machine only.",
    )
    delegation_token_secret_key: str | None = setting(
        None,
        type=_PASSWORD,
        doc="Secret of all brokers from which delegation tokens are made; without it there are none.",
    )
    delegation_token_max_lifetime_ms: int = setting(
        604_800_000, type=_LONG, at_least=1, doc="Longest life of a delegation token, however often it is renewed."
    )
    delegation_token_expiry_time_ms: int = setting(
        86_400_000, type=_LONG, at_least=1, doc="How long a delegation token is good for before it has to be renewed."
    )
    delegation_token_expiry_check_interval_ms: int = setting(
        3_600_000, type=_LONG, at_least=1, at_most=LONG_MAX, doc="How often expired delegation tokens are removed."
    )


class Users(NamedTuple):
    """What a JAAS line of PLAIN says."""

    passwords: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Users({', '.join(sorted(self.passwords))})"  # no secrets


def plain_users(module: LoginModule) -> Users:
    return Users({key.removeprefix("user_"): value for key, value in module.options.items() if key.startswith("user_")})


def jaas_file(environment: Mapping[str, str]) -> Path | None:
    """The file that Kafka's start scripts tell the JVM of: KAFKA_OPTS=-Djava.security.auth.login.config=FILE."""
    flag = "-Djava.security.auth.login.config="
    for word in environment.get("KAFKA_OPTS", "").split():
        if word.startswith(flag):
            return Path(word.removeprefix(flag).strip("\"'"))
    return None
