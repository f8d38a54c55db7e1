"""Certificates for tests: an authority of the test's own, made in an instant, and stores of brokers and clients."""

import datetime
from collections.abc import Sequence
from pathlib import Path

from ottla.tls.authority import (
    LOCAL_HOSTS,
    Authority,
    key_store_pem,
    key_store_pkcs12,
    make_authority,
    write_secret,
)
from ottla.tls.stores import KeyStore


class Certificates:
    """An authority, and what it has signed, as files in a folder."""

    def __init__(self, folder: Path, name: str = "an authority for tests") -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        """The authority's certificate: what clients and brokers name as their trust store."""
        self._authority: Authority = make_authority(name)
        folder.mkdir(parents=True, exist_ok=True)
        self.ca.write_text(self._authority.pem)

    def keys(self, name: str, hosts: Sequence[str] = (), *, expired: bool = False) -> KeyStore:
        """A key and a certificate in memory."""
        if not expired:
            return self._authority.issue(name, hosts)
        begins = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=10)
        return self._authority.issue(name, hosts, lifetime=datetime.timedelta(days=1), begins=begins)

    def pem(self, name: str, hosts: Sequence[str] = (), *, expired: bool = False, password: str | None = None) -> Path:
        """A PEM file with a key and its certificate; for a server if it has hosts."""
        path = self.folder / f"{name}.pem"
        write_secret(path, key_store_pem(self.keys(name, hosts, expired=expired), password))
        return path

    def pkcs12(self, name: str, password: str, hosts: Sequence[str] = ()) -> Path:
        path = self.folder / f"{name}.p12"
        write_secret(path, key_store_pkcs12(self.keys(name, hosts), password))
        return path

    def broker_settings(self, name: str = "broker") -> dict[str, str]:
        """What a broker on this machine needs for listeners with TLS."""
        return {
            "ssl.keystore.location": str(self.pem(name, LOCAL_HOSTS)),
            "ssl.truststore.location": str(self.ca),
        }
