"""Password hashes of a file of users: scrypt, as `scrypt$N$r$p$salt$hash` in base64."""

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import NamedTuple

from ottla.model.errors import OttlaError

COST, BLOCK, PARALLEL = 2**14, 8, 1
SALT_BYTES = 16
HASH_BYTES = 32
PASSWORD_BYTES_MAX = 1024
COST_MAX = 2**18
MEMORY_BYTES_MAX = 512 * 1024 * 1024


class BadHash(OttlaError):
    """A text that is no password hash."""


class PasswordHash(NamedTuple):
    cost: int
    block: int
    parallel: int
    salt: bytes
    expected: bytes

    def fits(self, password: str) -> bool:
        """Takes a tenth of a second, on purpose: call it in a thread."""
        given = _scrypt(password, self.salt, self.cost, self.block, self.parallel, len(self.expected))
        return hmac.compare_digest(given, self.expected)


def hash_password(password: str) -> str:
    """What to write into the file of users."""
    if not password:
        raise BadHash("an empty password lets everybody in")
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise BadHash(f"a password has at most {PASSWORD_BYTES_MAX} bytes")
    salt = secrets.token_bytes(SALT_BYTES)
    found = _scrypt(password, salt, COST, BLOCK, PARALLEL, HASH_BYTES)
    return f"scrypt${COST}${BLOCK}${PARALLEL}${_text(salt)}${_text(found)}"


def read_hash(text: str) -> PasswordHash:
    """BadHash says how one is made."""
    parts = text.split("$")
    try:
        if len(parts) != 6 or parts[0] != "scrypt":
            raise ValueError(text)
        cost, block, parallel = (int(part) for part in parts[1:4])
        salt, expected = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (ValueError, binascii.Error):
        raise BadHash("it is no password hash: make one with `ottla console --hash-password`") from None
    fits = cost >= 2 and cost & (cost - 1) == 0 and cost <= COST_MAX and 1 <= block <= 32 and 1 <= parallel <= 16
    if not fits or len(salt) < 8 or not 16 <= len(expected) <= 128:
        raise BadHash("the password hash has parameters out of bounds: make one with `ottla console --hash-password`")
    return PasswordHash(cost, block, parallel, salt, expected)


def decoy() -> PasswordHash:
    """For names that nobody has: refusing them takes as long as refusing a wrong password."""
    return PasswordHash(COST, BLOCK, PARALLEL, secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES))


def _scrypt(password: str, salt: bytes, cost: int, block: int, parallel: int, size: int) -> bytes:
    data = password.encode("utf-8", "surrogatepass")[: PASSWORD_BYTES_MAX + 1]
    return hashlib.scrypt(data, salt=salt, n=cost, r=block, p=parallel, dklen=size, maxmem=MEMORY_BYTES_MAX)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
