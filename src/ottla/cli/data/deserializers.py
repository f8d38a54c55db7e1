"""Java's standard deserializers, as far as printing goes: bytes of a key, value or header to the bytes to print."""

import math
import re
import struct
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal

from ottla.cli.common.output import CommandError
from ottla.cli.data.own_code import HOW_TO_WRITE_ONE, is_own, own_deserializer

Deserializer = Callable[[bytes], bytes]

_PACKAGE = "org.apache.kafka.common.serialization."
_NUMBERS = {"Short": ">h", "Integer": ">i", "Long": ">q", "Float": ">f", "Double": ">d"}
_ENCODINGS = {"utf8": "utf-8", "iso88591": "latin-1", "usascii": "ascii", "utf16": "utf-16", "utf16be": "utf-16-be"}
FLOAT_DIGITS = 9  # enough decimal digits to tell any two 32-bit floats apart
PLAIN_FROM, PLAIN_BELOW = 1e-3, 1e7  # Java writes numbers in this range without an exponent


class UndecodableRecord(CommandError):
    """A key, value or header is not what its deserializer expects."""


def deserializer(class_name: str, properties: Mapping[str, str], option: str = "deserializer") -> Deserializer:
    """The deserializer with this Java name (its package may be left out), with the properties meant for it.

    One of the user's own, in Python, is named with a colon; `option` is what messages about it begin with.
    """
    if is_own(class_name):
        return own_deserializer(class_name, option, properties)
    name = class_name.strip().removeprefix(_PACKAGE).removesuffix("Deserializer")
    if name == "String":
        return _string(properties)
    if name in _NUMBERS:
        return _number(name)
    if name in _OTHERS:
        return _OTHERS[name]
    known = ", ".join(f"{known}Deserializer" for known in ("String", *_NUMBERS, *_OTHERS))
    raise CommandError(
        f"there is no deserializer {class_name}: Java classes cannot be loaded here. There are {known}; for another, "
        f"{HOW_TO_WRITE_ONE}"
    )


def _string(properties: Mapping[str, str]) -> Deserializer:
    asked = properties.get("deserializer.encoding", "UTF8")
    encoding = _ENCODINGS.get(re.sub(r"[-_]", "", asked).lower(), asked)
    try:
        "".encode(encoding)
    except LookupError:
        raise CommandError(f"there is no character encoding {asked}") from None
    return lambda data: data.decode(encoding, "replace").encode()


def _number(name: str) -> Deserializer:
    layout = struct.Struct(_NUMBERS[name])

    def read(data: bytes) -> bytes:
        if len(data) != layout.size:
            raise UndecodableRecord(f"{name}Deserializer expects {layout.size} bytes and got {len(data)}")
        value = layout.unpack(data)[0]
        if isinstance(value, float):
            return java_decimal(value, single=name == "Float").encode()
        return str(value).encode()

    return read


def java_decimal(value: float, *, single: bool = False) -> str:
    """A float as Java prints it: the shortest digits that give the same number back, `1.0E10` for large ones."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    exact = Decimal(_shortest_single(value) if single else repr(value)).normalize()
    if value == 0 or PLAIN_FROM <= abs(value) < PLAIN_BELOW:
        plain = f"{exact:f}"
        return plain if "." in plain else f"{plain}.0"
    figures = "".join(map(str, exact.as_tuple().digits))
    sign = "-" if value < 0 else ""
    return f"{sign}{figures[0]}.{figures[1:] or '0'}E{exact.adjusted()}"


def _shortest_single(value: float) -> str:
    for digits in range(1, FLOAT_DIGITS + 1):
        text = f"{value:.{digits}g}"
        if struct.pack(">f", float(text)) == struct.pack(">f", value):
            return repr(float(text))
    return repr(value)


def _boolean(data: bytes) -> bytes:
    if len(data) != 1 or data[0] > 1:
        raise UndecodableRecord(f"BooleanDeserializer expects one byte, 0 or 1, and got {data!r}")
    return b"true" if data[0] else b"false"


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError:
        raise UndecodableRecord(f"UUIDDeserializer expects the text of a UUID and got {data!r}") from None


def _escaped(data: bytes) -> bytes:
    r"""Bytes that are no printable ASCII become \xHH, and a backslash is doubled."""
    return b"".join(
        b"\\\\" if byte == 0x5C else bytes([byte]) if 0x20 <= byte < 0x7F else b"\\x%02X" % byte for byte in data
    )


def _void(data: bytes) -> bytes:
    if data:
        raise UndecodableRecord(f"VoidDeserializer expects nothing and got {len(data)} bytes")
    return b"null"


_OTHERS: dict[str, Deserializer] = {
    "ByteArray": lambda data: data,
    "ByteBuffer": lambda data: data,
    "Bytes": _escaped,
    "Boolean": _boolean,
    "UUID": _uuid,
    "Void": _void,
}
