"""Cipher suites by the names that the standards and Java have, as OpenSSL calls them."""

import re
import ssl
from collections.abc import Iterable
from typing import NamedTuple

TLS_1_3_SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""What OpenSSL offers in TLS 1.3. Python cannot leave one of them out."""

_SUITE = re.compile(r"(?:TLS|SSL)_(?P<exchange>[A-Z_]+?)_WITH_(?P<cipher>[A-Z0-9_]+)")


class UnknownSuite(ValueError):
    """No such cipher suite, or none that OpenSSL has."""


class Suites(NamedTuple):
    """What to tell OpenSSL."""

    tls_1_2: str | None
    """A list in OpenSSL's form; None if only TLS 1.3 is to be spoken."""
    tls_1_3: bool
    """Whether TLS 1.3 may be spoken."""
    more_than_asked: tuple[str, ...] = ()
    """Suites of TLS 1.3 that nobody asked for and that are offered all the same."""


def read_suites(names: Iterable[str]) -> Suites:
    """The suites of ssl.cipher.suites; UnknownSuite for a name that stands for nothing."""
    asked = [name.strip() for name in names if name.strip()]
    of_1_3 = [name for name in asked if name in TLS_1_3_SUITES]
    older = [openssl_name(name) for name in asked if name not in TLS_1_3_SUITES]
    left = tuple(name for name in TLS_1_3_SUITES if name not in of_1_3) if of_1_3 else ()
    return Suites(":".join(older) or None, bool(of_1_3), left)


def openssl_name(name: str) -> str:
    """TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 is ECDHE-RSA-AES128-GCM-SHA256; OpenSSL's own names stay as they are."""
    match = _SUITE.fullmatch(name)
    translated = name if match is None else _translated(match["exchange"], match["cipher"])
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_ciphers(translated)
    except ssl.SSLError:
        raise UnknownSuite(name) from None
    if not any(one["name"] == translated for one in context.get_ciphers()):
        raise UnknownSuite(name)  # a word such as HIGH or ALL, which stands for many
    return translated


def _translated(exchange: str, cipher: str) -> str:
    cipher = re.sub(r"\b(AES|ARIA|CAMELLIA)_(\d+)", r"\1\2", cipher)
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("_CBC_", "_")
    cipher = cipher.replace("CCM_8", "CCM8")
    words = [cipher] if exchange == "RSA" else [exchange, cipher]
    return "-".join(words).replace("_", "-")
