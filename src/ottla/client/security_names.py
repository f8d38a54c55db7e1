"""TLS and SASL settings of Java clients, as librdkafka wants them."""

from collections.abc import Callable

from ottla.client.errors import InvalidSetting
from ottla.config.jaas import JaasError, parse_line
from ottla.tls.ciphers import UnknownSuite, read_suites

Settings = dict[str, str]

DROPPED = {
    "sasl.kerberos.ticket.renew.jitter": "kinit is run at a fixed interval here",
    "sasl.kerberos.ticket.renew.window.factor": "kinit is run at a fixed interval here",
    "sasl.login.refresh.buffer.seconds": "tokens are refreshed at a fixed share of their life here",
    "sasl.login.refresh.min.period.seconds": "tokens are refreshed at a fixed share of their life here",
    "sasl.login.refresh.window.factor": "tokens are refreshed at a fixed share of their life here",
    "sasl.login.refresh.window.jitter": "tokens are refreshed at a fixed share of their life here",
    "ssl.protocol": "OpenSSL agrees with the broker on the best version of TLS",
}
JAVA_ONLY = frozenset(
    {
        "sasl.client.callback.handler.class", "sasl.login.callback.handler.class", "sasl.login.class",
        "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.provider",
        "ssl.secure.random.implementation", "ssl.trustmanager.algorithm",
    }
)  # fmt: skip
_JKS_MAGICS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_STORES = ("ssl.truststore.", "ssl.keystore.")
_MODERN_TLS = frozenset({"TLSv1.2", "TLSv1.3"})
_STORE_HINT = "keytool -importkeystore -srckeystore {path} -destkeystore store.p12 -deststoretype PKCS12"
_TRUSTSTORE_HINT = "keytool -exportcert -rfc -keystore {path} -alias NAME -file ca.pem"


def is_security(name: str) -> bool:
    return name.startswith(("ssl.", "sasl.")) or name == "security.protocol"


def translate(properties: Settings) -> Settings:
    """The security settings among `properties` in librdkafka's names; what cannot be kept is an error."""
    result: Settings = {}
    for name, value in properties.items():
        if not is_security(name) or name.startswith(_STORES) or name in DROPPED:
            continue
        if name in JAVA_ONLY:
            raise InvalidSetting(f"{name} names a Java class or provider; there is no JVM here")
        result.update(_SPECIAL[name](value) if name in _SPECIAL else {name: value})
    result.update(_truststore(properties))
    result.update(_keystore(properties))
    return result


def _enabled_protocols(value: str) -> Settings:
    asked = {entry.strip() for entry in value.split(",") if entry.strip()}
    if not asked & _MODERN_TLS:
        raise InvalidSetting(f"ssl.enabled.protocols={value}: only TLSv1.2 and TLSv1.3 are offered here")
    return {}


def shows_a_token(value: str) -> bool:
    """Whether a JAAS line logs in with a delegation token."""
    try:
        return parse_line(value).options.get("tokenauth", "").lower() == "true" if value else False
    except JaasError:
        return False


def _jaas(value: str) -> Settings:
    """`...PlainLoginModule required username="a" password="b";`"""
    try:
        read = parse_line(value)
    except JaasError as error:
        raise InvalidSetting(f"sasl.jaas.config: {error}") from None
    module, options = read.short_name, read.options
    if module in ("PlainLoginModule", "ScramLoginModule"):
        if not {"username", "password"} <= options.keys():
            raise InvalidSetting(f"sasl.jaas.config: {module} needs username and password")
        return {"sasl.username": options["username"], "sasl.password": options["password"]}
    if module == "Krb5LoginModule":
        names = {
            "keyTab": "sasl.kerberos.keytab",
            "principal": "sasl.kerberos.principal",
            "serviceName": "sasl.kerberos.service.name",
        }
        return {names[key]: options[key] for key in names if key in options}
    if module == "OAuthBearerLoginModule":
        names = {
            "clientId": "sasl.oauthbearer.client.id",
            "clientSecret": "sasl.oauthbearer.client.secret",
            "scope": "sasl.oauthbearer.scope",
        }
        return {"sasl.oauthbearer.method": "oidc"} | {names[key]: options[key] for key in names if key in options}
    raise InvalidSetting(
        f"sasl.jaas.config: the login module `{module}` is not known; there are PlainLoginModule, ScramLoginModule, "
        "Krb5LoginModule and OAuthBearerLoginModule"
    )


def _endpoint_identification(value: str) -> Settings:
    return {"ssl.endpoint.identification.algorithm": value.strip().lower() or "none"}


def _suites(value: str) -> Settings:
    """Java has the standards' names and commas, OpenSSL its own names and colons; either is understood."""
    names = [part.strip() for part in value.split(",") if part.strip()]
    try:
        suites = read_suites(names)
    except UnknownSuite:
        return {"ssl.cipher.suites": ":".join(names)}  # words of OpenSSL's such as HIGH, or a slip that it tells of
    return {"ssl.cipher.suites": suites.tls_1_2} if suites.tls_1_2 is not None else {}


_SPECIAL: dict[str, Callable[[str], Settings]] = {
    "sasl.jaas.config": _jaas,
    "security.protocol": lambda value: {"security.protocol": value.strip().lower()},
    "ssl.cipher.suites": _suites,
    "ssl.enabled.protocols": _enabled_protocols,
    "ssl.endpoint.identification.algorithm": _endpoint_identification,
}


def _truststore(properties: Settings) -> Settings:
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    path = properties.get("ssl.truststore.location")
    if not path:
        return {}
    kind = _store_type(properties, "ssl.truststore", path)
    if kind == "PEM":
        return {"ssl.ca.location": path}
    if kind == "PKCS12":  # OpenSSL's libraries take authorities as PEM only
        from ottla.tls.stores import StoreError, StoreSettings, load_trust_store  # noqa: PLC0415 (slow to import)

        try:
            return {"ssl.ca.pem": load_trust_store(StoreSettings(path, properties.get("ssl.truststore.password"))).pem}
        except StoreError as error:
            raise InvalidSetting(str(error)) from None
    raise InvalidSetting(
        f"ssl.truststore.location={path}: a JKS trust store cannot be read here; convert it "
        f"({_STORE_HINT.format(path=path)}) and set ssl.truststore.type=PKCS12, or export its certificates as PEM "
        f"({_TRUSTSTORE_HINT.format(path=path)})"
    )


def _keystore(properties: Settings) -> Settings:
    result: Settings = {}
    if "ssl.keystore.certificate.chain" in properties:
        result["ssl.certificate.pem"] = properties["ssl.keystore.certificate.chain"]
    if "ssl.keystore.key" in properties:
        result["ssl.key.pem"] = properties["ssl.keystore.key"]
    path = properties.get("ssl.keystore.location")
    if not path:
        return result
    store_type = _store_type(properties, "ssl.keystore", path)
    if store_type == "PEM":  # Java's PEM key store holds the key and the certificates in one file
        return result | {"ssl.certificate.location": path, "ssl.key.location": path}
    if store_type == "PKCS12":
        result["ssl.keystore.location"] = path
        if "ssl.keystore.password" in properties:
            result["ssl.keystore.password"] = properties["ssl.keystore.password"]
        return result
    raise InvalidSetting(
        f"ssl.keystore.location={path}: a JKS key store cannot be read here; convert it "
        f"({_STORE_HINT.format(path=path)}) and set ssl.keystore.type=PKCS12"
    )


def _store_type(properties: Settings, prefix: str, path: str) -> str:
    """What a file is its content says, as in Java; of one that is not here its type, or else the end of its name."""
    named = properties.get(f"{prefix}.type", "").upper()
    try:
        with open(path, "rb") as store:
            begin = store.read(4)
    except OSError:
        begin = b""
    if begin.startswith(_JKS_MAGICS):
        return "JKS"
    if named not in ("", "JKS"):
        return named
    if begin:
        return "PKCS12" if begin.startswith(b"\x30") else "PEM"
    if path.endswith((".p12", ".pfx")):
        return "PKCS12"
    return "PEM" if path.endswith((".pem", ".crt", ".cer")) else "JKS"
