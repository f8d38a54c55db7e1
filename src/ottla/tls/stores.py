"""Key and trust stores as Kafka's settings name them: PEM files, PEM in a setting, PKCS12; JKS hears how to become one.

What a file is its first bytes say, as in Java, which opens a PKCS12 store whatever its type is said to be. Secrets stay
out of every message and of every repr.
"""

import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import pkcs12

from ottla.model.errors import OttlaError

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
STORE_TYPES = (JKS, PKCS12, PEM)
QUICK_RSA_BITS = 2048
SOON = datetime.timedelta(days=30)

_JKS_MAGICS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")  # the second is JCEKS
_DER_SEQUENCE = b"\x30"


class StoreError(OttlaError):
    """A store that cannot be used, and what to do about it."""


class StoreSettings(NamedTuple):
    """Where a store is, in Kafka's words. `prefix` stands before the names in messages: `listener.name.x.`"""

    location: str | None = None
    password: str | None = None
    type: str | None = None
    key_password: str | None = None
    key: str | None = None
    certificates: str | None = None
    """The chain of a key store, the authorities of a trust store, as PEM text."""
    prefix: str = ""

    def __repr__(self) -> str:
        return f"StoreSettings({self.prefix}{self.location})"  # no secrets

    @property
    def is_given(self) -> bool:
        return self.location is not None or self.key is not None or self.certificates is not None


class KeyStore(NamedTuple):
    """A private key and its certificate, then those that signed it."""

    key_pem: str
    chain: tuple[x509.Certificate, ...]

    def __repr__(self) -> str:
        return f"KeyStore({self.chain[0].subject.rfc4514_string()})"  # no secrets

    @property
    def certificate(self) -> x509.Certificate:
        return self.chain[0]

    @property
    def chain_pem(self) -> str:
        return certificates_pem(self.chain)

    @property
    def are_slow(self) -> bool:
        """Whether a signature takes milliseconds."""
        public = self.certificate.public_key()
        return isinstance(public, RSAPublicKey) and public.key_size > QUICK_RSA_BITS


class TrustStore(NamedTuple):
    """The certificates of authorities that are believed."""

    authorities: tuple[x509.Certificate, ...]

    @property
    def pem(self) -> str:
        return certificates_pem(self.authorities)


def certificates_pem(certificates: tuple[x509.Certificate, ...]) -> str:
    return "".join(one.public_bytes(serialization.Encoding.PEM).decode() for one in certificates)


def load_key_store(settings: StoreSettings) -> KeyStore:
    """The key store of these settings; StoreError says why there is none."""
    prefix = settings.prefix
    _check_key_settings(settings)
    if settings.location is None:
        name = f"{prefix}ssl.keystore.key"
        key = _pem_key((settings.key or "").encode(), settings.key_password, name, prefix)
        chain = _pem_certificates((settings.certificates or "").encode(), f"{prefix}ssl.keystore.certificate.chain")
        return _key_store(key, chain, name)
    name = f"{prefix}ssl.keystore.location"
    data = _read(settings.location, name)
    if _kind(data, settings, "keystore") == PEM:
        if settings.password is not None:
            raise StoreError(
                f"{prefix}ssl.keystore.password: a PEM file has no password of its own; that of the private key in it "
                f"is {prefix}ssl.key.password"
            )
        key = _pem_key(data, settings.key_password, f"{name}: {settings.location}", prefix)
        return _key_store(key, _pem_certificates(data, f"{name}: {settings.location}"), name)
    store = _pkcs12(data, settings.password, f"{name}: {settings.location}", f"{prefix}ssl.keystore.password")
    if store.key is None or store.cert is None:
        raise StoreError(
            f"{name}: {settings.location} has no private key with its certificate; is it a trust store? "
            f"That is {prefix}ssl.truststore.location"
        )
    others = tuple(bag.certificate for bag in store.additional_certs)
    return _key_store(store.key, (store.cert.certificate, *others), name)


def load_trust_store(settings: StoreSettings) -> TrustStore:
    """The trust store of these settings; StoreError says why there is none."""
    prefix = settings.prefix
    name = f"{prefix}ssl.truststore.location"
    if settings.certificates is not None:
        if settings.location is not None:
            raise StoreError(f"{name}: give either it or {prefix}ssl.truststore.certificates, not both")
        if settings.password is not None:
            raise StoreError(
                f"{prefix}ssl.truststore.password: certificates in a setting have no password; take it out"
            )
        return TrustStore(_pem_certificates(settings.certificates.encode(), f"{prefix}ssl.truststore.certificates"))
    assert settings.location is not None
    data = _read(settings.location, name)
    if _kind(data, settings, "truststore") == PEM:
        if settings.password is not None:
            raise StoreError(f"{prefix}ssl.truststore.password: a PEM file has no password; take it out")
        return TrustStore(_pem_certificates(data, f"{name}: {settings.location}"))
    store = _pkcs12(data, settings.password, f"{name}: {settings.location}", f"{prefix}ssl.truststore.password")
    found = [bag.certificate for bag in (store.cert, *store.additional_certs) if bag is not None]
    if not found:
        raise StoreError(f"{name}: {settings.location} holds no certificate; add that of your authority to it")
    return TrustStore(tuple(found))


def lifetime_problem(certificate: x509.Certificate, now: datetime.datetime) -> str | None:
    """What an operator should know of the time for which a certificate holds; None if all is well."""
    subject = certificate.subject.rfc4514_string()
    if now > certificate.not_valid_after_utc:
        return f"the certificate of {subject} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < certificate.not_valid_before_utc:
        return f"the certificate of {subject} holds only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on"
    if now + SOON > certificate.not_valid_after_utc:
        return f"the certificate of {subject} expires on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    return None


def _check_key_settings(settings: StoreSettings) -> None:
    prefix = settings.prefix
    if settings.location is not None:
        if settings.key is not None or settings.certificates is not None:
            raise StoreError(f"{prefix}ssl.keystore.location: give either it or {prefix}ssl.keystore.key, not both")
    elif settings.key is None:
        raise StoreError(
            f"{prefix}ssl.keystore.location: without a private key and a certificate nobody can be talked to over TLS; "
            f"name a PEM or PKCS12 file, or give them as {prefix}ssl.keystore.key and "
            f"{prefix}ssl.keystore.certificate.chain"
        )
    elif settings.certificates is None:
        raise StoreError(
            f"{prefix}ssl.keystore.key: its certificate is missing, {prefix}ssl.keystore.certificate.chain"
        )
    elif settings.password is not None:
        raise StoreError(
            f"{prefix}ssl.keystore.password: a key in a setting has no store; its own password is "
            f"{prefix}ssl.key.password"
        )


def _read(location: str, name: str) -> bytes:
    try:
        data = Path(location).read_bytes()
    except OSError as error:
        raise StoreError(f"{name}: {location}: {error.strerror}") from None
    if not data:
        raise StoreError(f"{name}: {location} is empty")
    return data


def _kind(data: bytes, settings: StoreSettings, what: str) -> str:
    """PEM or PKCS12, by the first bytes; a type that says otherwise is a mistake."""
    said = (settings.type or JKS).upper()
    name, location = f"{settings.prefix}ssl.{what}.location", settings.location
    if said not in STORE_TYPES:
        raise StoreError(f"{settings.prefix}ssl.{what}.type: {said} cannot be read; there are PEM and PKCS12")
    if data.startswith(_JKS_MAGICS):
        raise StoreError(
            f"{name}: {location} is a JKS store, which only a JVM can read. Convert it with: keytool -importkeystore "
            f"-srckeystore {location} -destkeystore {_with_ending(str(location))} -deststoretype PKCS12"
        )
    found = PKCS12 if data.startswith(_DER_SEQUENCE) else PEM if b"-----BEGIN " in data else None
    if found is None:
        raise StoreError(f"{name}: {location} is neither PEM nor PKCS12")
    if said not in (JKS, found):  # JKS is Kafka's default, said or not
        raise StoreError(f"{name}: {location} is {found}, and {settings.prefix}ssl.{what}.type says {said}")
    return found


def _with_ending(location: str) -> str:
    return f"{location.removesuffix('.jks')}.p12"


def _pem_key(data: bytes, password: str | None, name: str, prefix: str) -> PrivateKeyTypes:
    begin = data.find(b"-----BEGIN ")
    while begin >= 0 and b"PRIVATE KEY-----" not in data[begin : data.find(b"\n", begin)]:
        begin = data.find(b"-----BEGIN ", begin + 1)
    if begin < 0:
        raise StoreError(f"{name} has no private key: the part from -----BEGIN PRIVATE KEY----- on")
    end = data.find(b"-----END", begin)
    block = data[begin : data.find(b"-----", end + 8) + 5] + b"\n"
    encrypted = b"ENCRYPTED" in block
    try:
        return serialization.load_pem_private_key(block, password.encode() if password and encrypted else None)
    except TypeError:
        raise StoreError(f"{name}: the private key is encrypted; give {prefix}ssl.key.password") from None
    except ValueError:
        why = f"{prefix}ssl.key.password is wrong" if encrypted else "it is damaged"
        raise StoreError(f"{name}: the private key cannot be read, {why}") from None


def _pem_certificates(data: bytes, name: str) -> tuple[x509.Certificate, ...]:
    if b"-----BEGIN CERTIFICATE-----" not in data:
        raise StoreError(f"{name} has no certificate: the part from -----BEGIN CERTIFICATE----- on")
    try:
        return tuple(x509.load_pem_x509_certificates(data))
    except ValueError as error:
        raise StoreError(f"{name}: a certificate in it cannot be read: {error}") from None


def _pkcs12(data: bytes, password: str | None, name: str, password_name: str) -> pkcs12.PKCS12KeyAndCertificates:
    try:
        return pkcs12.load_pkcs12(data, password.encode() if password else None)
    except ValueError:
        why = "is wrong, or the file is damaged" if password else "is missing, or the file is damaged"
        raise StoreError(f"{name} cannot be opened: {password_name} {why}") from None


def _key_store(key: PrivateKeyTypes, certificates: tuple[x509.Certificate, ...], name: str) -> KeyStore:
    public = _public_bytes(key)
    own = [one for one in certificates if _public_bytes(one) == public]
    if not own:
        raise StoreError(f"{name}: the private key does not belong to the certificate beside it; they must be a pair")
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return KeyStore(pem, _chain(own[0], certificates))


def _public_bytes(owner: PrivateKeyTypes | x509.Certificate) -> bytes:
    return owner.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _chain(own: x509.Certificate, others: tuple[x509.Certificate, ...]) -> tuple[x509.Certificate, ...]:
    """The certificate, then its signer, and so on, as far as they are there: a store need not keep this order."""
    chain = [own]
    while chain[-1].issuer != chain[-1].subject:
        signer = next((one for one in others if one.subject == chain[-1].issuer and one not in chain), None)
        if signer is None:
            break
        chain.append(signer)
    return tuple(chain)
