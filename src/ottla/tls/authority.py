"""A certificate authority for one machine, made in an instant: for trying things out, and for tests.

Keys are of elliptic curves (P-256), which are made in less than a millisecond and which every client knows.
"""

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ottla.tls.stores import KeyStore, certificates_pem

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
ONE_YEAR = datetime.timedelta(days=365)
_CLOCKS_DIFFER = datetime.timedelta(minutes=5)


class Authority(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> str:
        return certificates_pem((self.certificate,))

    def issue(
        self,
        name: str | x509.Name,
        hosts: Sequence[str] = (),
        *,
        lifetime: datetime.timedelta = ONE_YEAR,
        begins: datetime.datetime | None = None,
    ) -> KeyStore:
        """A key and a certificate, for a server with these hosts and for a client alike."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(name), self.certificate.subject, key, lifetime, begins)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(one) for one in hosts]), critical=False)
        own = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), critical=False
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        return KeyStore(_key_pem(key), (certificate, self.certificate))


def make_authority(name: str = "Ottla, for this machine only", lifetime: datetime.timedelta = ONE_YEAR) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    builder = _builder(subject, subject, key, lifetime, None)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = builder.add_extension(usage, critical=True)
    return Authority(key, builder.sign(key, hashes.SHA256()))


def key_store_pem(keys: KeyStore, password: str | None = None) -> str:
    """One PEM text as ssl.keystore.location wants it: the key, then the chain."""
    if password is None:
        return keys.key_pem + keys.chain_pem
    key = serialization.load_pem_private_key(keys.key_pem.encode(), None)
    encryption = serialization.BestAvailableEncryption(password.encode())
    encrypted = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return encrypted.decode() + keys.chain_pem


def key_store_pkcs12(keys: KeyStore, password: str) -> bytes:
    key = serialization.load_pem_private_key(keys.key_pem.encode(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    encryption = serialization.BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"ottla", key, keys.chain[0], list(keys.chain[1:]), encryption)


def write_secret(path: Path, data: str | bytes) -> None:
    """A file that only its owner can read, whatever was there before."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    lifetime: datetime.timedelta,
    begins: datetime.datetime | None,
) -> x509.CertificateBuilder:
    begins = begins or datetime.datetime.now(datetime.UTC) - _CLOCKS_DIFFER
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + lifetime)
    )


def _subject(name: str | x509.Name) -> x509.Name:
    return name if isinstance(name, x509.Name) else x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
