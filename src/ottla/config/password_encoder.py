"""A password that only those can read who have a secret, in the form in which Kafka keeps it:

    keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:...,iterations:4096,
    encryptedPassword:...,passwordLength:7,initializationVector:...

Pure: randomness comes in.
"""

import base64
import binascii
import dataclasses
import functools
import hashlib
from collections.abc import Callable

from ottla.config.setting import SettingType, setting

SALT_BYTES = 256
VECTOR_BYTES = 16
CIPHER = "AES/CBC/PKCS5Padding"
DIGESTS = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA512": "sha512",
}
_FIELDS = frozenset(
    {
        "keyFactoryAlgorithm", "cipherAlgorithm", "keyLength", "salt", "iterations", "encryptedPassword",
        "passwordLength", "initializationVector",
    }
)  # fmt: skip
ITERATIONS_MAX = 10_000_000
"""More would be a way to hold up a broker."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PasswordEncoderSettings:
    """How passwords are kept that are given to brokers while they run: those of key and trust stores."""

    password_encoder_secret: str | None = setting(
        None,
        type=SettingType.PASSWORD,
        doc="Secret from which the key is made that encrypts passwords in the metadata: the same on all brokers. "
        "Without it settings that hold a password (ssl.keystore.password, ssl.keystore.key, ...) cannot be changed "
        "while the broker runs, because they would lie there in clear.",
    )
    password_encoder_old_secret: str | None = setting(
        None,
        type=SettingType.PASSWORD,
        doc="The secret before this one: what it has encrypted is encrypted anew when the broker starts.",
    )
    password_encoder_keyfactory_algorithm: str = setting(
        "PBKDF2WithHmacSHA512",
        choices=tuple(DIGESTS),
        kafka_default=None,
        differs="Kafka chooses this one by itself, where Java has it",
        doc="How the key is made from the secret.",
    )
    password_encoder_cipher_algorithm: str = setting(
        CIPHER, fixed="other ciphers are not served", doc="How passwords are encrypted."
    )
    password_encoder_key_length: int = setting(
        128,
        at_least=128,
        at_most=256,
        check=lambda bits: None if bits in (128, 192, 256) else "AES has keys of 128, 192 or 256 bits",
        doc="Bits of the key.",
    )
    password_encoder_iterations: int = setting(
        4096, at_least=1024, at_most=ITERATIONS_MAX, doc="How much work it is to make the key from the secret."
    )


class CannotDecode(ValueError):
    """A password that none of the secrets fits, or that nobody wrote as we read it."""


def encode(settings: PasswordEncoderSettings, password: str, random_bytes: Callable[[int], bytes]) -> str:
    """A password as Kafka writes it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415 (slow to import)
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415

    assert settings.password_encoder_secret is not None
    salt, vector = random_bytes(SALT_BYTES), random_bytes(VECTOR_BYTES)
    factory, bits = settings.password_encoder_keyfactory_algorithm, settings.password_encoder_key_length
    key = _key(settings.password_encoder_secret, factory, salt, settings.password_encoder_iterations, bits)
    padder = PKCS7(algorithms.AES.block_size).padder()
    padded = padder.update(password.encode()) + padder.finalize()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    fields = {
        "keyFactoryAlgorithm": factory,
        "cipherAlgorithm": CIPHER,
        "keyLength": bits,
        "salt": _base64(salt),
        "iterations": settings.password_encoder_iterations,
        "encryptedPassword": _base64(encryptor.update(padded) + encryptor.finalize()),
        "passwordLength": _java_length(password),
        "initializationVector": _base64(vector),
    }
    return ",".join(f"{name}:{value}" for name, value in fields.items())


@functools.lru_cache(maxsize=64)
def decode(secret: str, text: str) -> str:
    """The password again; CannotDecode if this secret is not the one."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes  # noqa: PLC0415
    from cryptography.hazmat.primitives.padding import PKCS7  # noqa: PLC0415

    fields = _fields(text)
    try:
        if fields["cipherAlgorithm"] != CIPHER or int(fields["iterations"]) > ITERATIONS_MAX:
            raise CannotDecode("it is encrypted in a way that is not served here")
        salt, vector, data = (
            base64.b64decode(fields[name], validate=True)
            for name in ("salt", "initializationVector", "encryptedPassword")
        )
        key = _key(
            secret, fields["keyFactoryAlgorithm"], salt, int(fields["iterations"]), int(fields["keyLength"])
        )  # fmt: skip
        decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
        unpadder = PKCS7(algorithms.AES.block_size).unpadder()
        padded = decryptor.update(data) + decryptor.finalize()
        password = (unpadder.update(padded) + unpadder.finalize()).decode()
        if _java_length(password) != int(fields["passwordLength"]):
            raise CannotDecode("it has another length than it should")
    except (KeyError, ValueError, binascii.Error) as error:
        raise CannotDecode("Password could not be decoded") from error
    return password


def _key(secret: str, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
    return hashlib.pbkdf2_hmac(DIGESTS[factory], secret.encode(), salt, iterations, bits // 8)


def _fields(text: str) -> dict[str, str]:
    return dict(part.partition(":")[::2] for part in text.split(","))


def is_encoded(text: str) -> bool:
    return text.count(",") == len(_FIELDS) - 1 and _fields(text).keys() == _FIELDS


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
