"""Contexts of Kerberos for logins by GSSAPI, with the key of this broker. The library is an extra: ottla[gssapi]."""

import importlib
from typing import Any

from ottla.broker.security.sasl.gssapi import ContextFailed
from ottla.client.kerberos import reason
from ottla.config.setting import ConfigError


class ServiceKey:
    """The broker's own key, from a keytab."""

    def __init__(self, keytab: str, principal: str) -> None:
        """ConfigError if the keytab has no key for this principal."""
        self._gssapi: Any = importlib.import_module("gssapi")
        library = self._gssapi
        try:
            name = library.Name(principal, library.NameType.kerberos_principal)
            self._credentials = library.Credentials(name=name, usage="accept", store={"keytab": keytab})
            self.realm = str(name.canonicalize(library.MechType.kerberos)).rpartition("@")[2]
        except library.exceptions.GSSError as error:
            raise ConfigError([f"GSSAPI: no key for {principal} in {keytab}: {reason(error)}"]) from None

    def begin(self) -> "AcceptingContext":
        return AcceptingContext(self._gssapi, self._credentials)


class AcceptingContext:
    def __init__(self, library: Any, credentials: Any) -> None:
        self._library = library
        self._context = library.SecurityContext(creds=credentials, usage="accept")
        # Else the library keeps a refusal to itself and raises it wherever it is asked next; its token is not for SASL.
        self._context.__DEFER_STEP_ERRORS__ = False

    @property
    def complete(self) -> bool:
        return bool(self._context.complete)

    def step(self, token: bytes) -> bytes:
        try:
            return self._context.step(token) or b""
        except self._library.exceptions.GSSError as error:
            raise ContextFailed(reason(error)) from None

    def wrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.wrap(message, False).message)
        except self._library.exceptions.GSSError as error:
            raise ContextFailed(reason(error)) from None

    def unwrap(self, message: bytes) -> bytes:
        try:
            return bytes(self._context.unwrap(message).message)
        except self._library.exceptions.GSSError as error:
            raise ContextFailed(reason(error)) from None

    def client(self) -> str:
        try:
            return str(self._context.initiator_name)
        except self._library.exceptions.GSSError as error:
            raise ContextFailed(reason(error)) from None
