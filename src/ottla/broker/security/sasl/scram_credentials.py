"""What a broker keeps of a SCRAM password: enough to check it, not enough to use it. As text, as Kafka writes it."""

import base64
import bisect
import hashlib
import hmac
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ottla.model.errors import ApiError, ErrorCode

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384
SALT_BYTES = 26
_SALT_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"


class ScramMechanism(NamedTuple):
    name: str
    number: int
    """On the wire."""
    digest: str


SHA_256 = ScramMechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512 = ScramMechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS = {mechanism.name: mechanism for mechanism in (SHA_256, SHA_512)}
BY_NUMBER = {mechanism.number: mechanism for mechanism in MECHANISMS.values()}


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"  # no secrets


def salt_of(random_bytes: bytes) -> bytes:
    """26 digits and small letters, as Kafka's tools make them: a salt does not tell where a credential comes from."""
    number, digits = int.from_bytes(random_bytes[:24]), []
    for _ in range(SALT_BYTES):
        number, digit = divmod(number, len(_SALT_ALPHABET))
        digits.append(_SALT_ALPHABET[digit])
    return bytes(digits)


def salted_password(mechanism: ScramMechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """Slow by design: not for an event loop."""
    return hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)


def credential_of(mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", mechanism.digest), iterations)


class IterationCounts:
    """How many iterations users have, so that those who do not exist have some of them in the same shares.

    Which one an invented user has is decided by its name and a secret. When users come and go few of the invented ones
    get another count, and with it another salt: it looks like a new password.
    """

    def __init__(self, counts: Iterable[int] = ()) -> None:
        shares = sorted(Counter(counts).items())
        self._counts = tuple(iterations for iterations, _ in shares) or (ITERATIONS_MIN,)
        self._ends = tuple(itertools.accumulate(share for _, share in shares)) or (1,)

    def of(self, draw: bytes) -> int:
        place = int.from_bytes(draw[:8]) * self._ends[-1] >> 64
        return self._counts[bisect.bisect_right(self._ends, place)]


def decoy_credential(mechanism: ScramMechanism, secret: bytes, user: str, counts: IterationCounts) -> ScramCredential:
    """For a user who does not exist: always the same, so that asking again does not tell. Nothing fits it."""

    def derived(purpose: str) -> bytes:
        return hmac.digest(secret, f"{purpose}\0{mechanism.name}\0{user}".encode(), mechanism.digest)

    iterations = counts.of(derived("iterations"))
    salt = salt_of(derived(f"salt {iterations}"))
    return ScramCredential(salt, derived("stored key"), derived("server key"), iterations)


def write_credential(credential: ScramCredential) -> str:
    salt, stored, server = (base64.b64encode(part).decode() for part in credential[:3])
    return f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"


def read_credential(text: str) -> ScramCredential:
    """ValueError if it is not one."""
    parts = dict(part.strip().partition("=")[::2] for part in text.split(","))
    try:
        salt, stored, server = (
            base64.b64decode(parts[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        return ScramCredential(salt, stored, server, int(parts["iterations"]))
    except KeyError as error:
        raise ValueError(f"a SCRAM credential without {error}") from None


def iterations_of(text: str) -> int | None:
    """Of a credential as it is kept, without reading the rest of it; None if it says nothing that is served."""
    number = text.rpartition("iterations=")[2].partition(",")[0].strip()
    iterations = int(number) if number.isdecimal() else 0
    return iterations if ITERATIONS_MIN <= iterations <= ITERATIONS_MAX else None


def check_iterations(iterations: int) -> None:
    if iterations < ITERATIONS_MIN:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > ITERATIONS_MAX:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
