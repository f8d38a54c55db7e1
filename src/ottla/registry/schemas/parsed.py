"""What every kind of schema looks like once it is read."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ottla.registry.errors import InvalidSchema, RegistryError
from ottla.registry.limits import LIMITS, SchemaLimits


class Referenced(NamedTuple):
    """A schema that another one names, with the name that it uses."""

    name: str
    text: str


class ParsedSchema(Protocol):
    """`canonical` is what is stored: the same for texts that differ in nothing that matters."""

    @property
    def schema_type(self) -> str: ...
    @property
    def canonical(self) -> str: ...
    def normalized(self) -> str:
        """As `canonical`, and also free of order where order says nothing."""
        ...

    def formatted(self, form: str) -> str:
        """In the form that a client asked for by `?format=`; an unknown one is none."""
        ...


class Parse(Protocol):
    def __call__(
        self, text: str, references: Sequence[Referenced] = (), limits: SchemaLimits = LIMITS
    ) -> ParsedSchema: ...


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def check_encodable(text: str, what: str) -> None:
    """Half of a surrogate pair is no character: no UTF-8 could carry it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema(f"{what}: \\u{ord(text[error.start]):04x} is half of a character") from None


def load_json(text: str, what: str, limits: SchemaLimits) -> Any:
    """A document not nested deeper than allowed, without doubled keys, of numbers and texts that can be kept."""
    check_encodable(text, what)

    def integer(digits: str) -> int:
        if len(digits) > limits.number_digits_max:
            raise InvalidSchema(f"{what}: a number has at most {limits.number_digits_max} digits here")
        return int(digits)

    def fraction(digits: str) -> float:
        found = float(digits)
        if not math.isfinite(found):
            raise InvalidSchema(f"{what}: {digits[:80]} is larger than any number that can be kept")
        return found

    try:
        document = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_int=integer,
            parse_float=fraction,
        )
    except RecursionError:
        raise InvalidSchema(f"{what}: nested deeper than {limits.depth_max} levels") from None
    except RegistryError:
        raise
    except ValueError as error:
        raise InvalidSchema(f"{what}: not JSON: {error}") from None
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > limits.depth_max:
            raise InvalidSchema(f"{what}: nested deeper than {limits.depth_max} levels")
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
            if isinstance(inner, dict | list)
        ]
    if _SURROGATE.search(text):  # escaped, they may be whole pairs
        check_encodable(compact(document), what)
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidSchema(f"the key `{twice.encode(errors='backslashreplace').decode()}` is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise InvalidSchema(f"{name} is not JSON")


def compact(document: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)
