"""Settings of brokers that are changed while they run, as the metadata keep them: passwords among them encrypted."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.config.password_encoder import CannotDecode, PasswordEncoderSettings, decode, encode, is_encoded
from ottla.config.per_listener import declared_as
from ottla.config.setting import ConfigError


class Decoded(NamedTuple):
    """Settings as they were given, and the names of those that could not be had."""

    configs: Mapping[str, str]
    lost: tuple[str, ...]
    old: bool
    """Whether something is not encrypted with the secret that counts now."""


def is_secret(name: str) -> bool:
    """Whether a setting of this name, with or without a listener's prefix, holds a password."""
    try:
        return declared_as(name).sensitive
    except (KeyError, ConfigError):
        return False


def decoded(configs: Mapping[str, str], settings: PasswordEncoderSettings) -> Decoded:
    """The settings of one broker as they are kept, with their passwords readable."""
    secrets = [each for each in (settings.password_encoder_secret, settings.password_encoder_old_secret) if each]
    plain, lost, old = dict(configs), [], False
    for name, text in configs.items():
        if not is_secret(name):
            continue
        if not is_encoded(text):
            old = True  # written before there was a secret
            continue
        for secret in secrets:
            try:
                plain[name] = decode(secret, text)
            except CannotDecode:
                continue
            old = old or secret != settings.password_encoder_secret
            break
        else:
            lost.append(name)
            del plain[name]
    return Decoded(plain, tuple(lost), old and settings.password_encoder_secret is not None)


def encoded(
    configs: Mapping[str, str], settings: PasswordEncoderSettings, random_bytes: Callable[[int], bytes]
) -> dict[str, str]:
    """The settings as they are kept: what is not encrypted yet is now. ConfigError if there is no secret for it."""
    bare = [name for name, text in configs.items() if is_secret(name) and not is_encoded(text)]
    if bare and settings.password_encoder_secret is None:
        raise ConfigError(
            [
                f"{name}: it would be kept in clear; give all brokers a password.encoder.secret and restart them, or "
                "put the password into server.properties"
                for name in bare
            ]
        )
    return {**configs, **{name: encode(settings, configs[name], random_bytes) for name in bare}}
