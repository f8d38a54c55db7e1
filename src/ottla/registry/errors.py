"""What the registry answers with when it does not do what it was asked: one code per reason, as clients know them.

The first three digits of a code are the HTTP status.
"""

from enum import IntEnum

from ottla.model.errors import OttlaError


class Code(IntEnum):
    UNAUTHORIZED = 40101
    FORBIDDEN = 40301
    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    CONFIG_NOT_FOUND = 40408
    MODE_NOT_FOUND = 40409
    ASSOCIATION_NOT_FOUND = 40410
    INCOMPATIBLE = 40901
    ASSOCIATION_EXISTS = 40904
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_LEVEL = 42203
    INVALID_MODE = 42204
    NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    ID_TAKEN = 42207
    INVALID_SUBJECT = 42208
    TOO_LARGE = 42209
    INVALID_RULES = 42210
    CONTEXT_NOT_EMPTY = 42211
    INVALID_ASSOCIATION = 42212
    STORE = 50001
    TIMEOUT = 50002
    FORWARDING = 50003
    NO_LEADER = 50004


class RegistryError(OttlaError):
    """A request that is refused; the message says what is wrong."""

    def __init__(self, code: int, message: str) -> None:
        self.code = code
        super().__init__(message)

    @property
    def status(self) -> int:
        return self.code // 100 if self.code >= 1000 else self.code


class InvalidSchema(RegistryError):
    def __init__(self, message: str) -> None:
        super().__init__(Code.INVALID_SCHEMA, message)


class TooComplex(RegistryError):
    """A schema whose work would be out of proportion; only its own request pays."""

    def __init__(self, message: str) -> None:
        super().__init__(Code.TOO_LARGE, message)


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(Code.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(Code.VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(what: str = "") -> RegistryError:
    return RegistryError(Code.SCHEMA_NOT_FOUND, f"Schema {what} not found" if what else "Schema not found")
