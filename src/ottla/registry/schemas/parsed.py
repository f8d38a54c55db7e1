"""What every kind of schema looks like once it is read."""

import json
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


def load_json(text: str, what: str, limits: SchemaLimits) -> Any:
    """A document that is not nested deeper than allowed, without doubled keys."""
    try:
        document = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
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
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidSchema(f"the key `{twice}` is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise InvalidSchema(f"{name} is not JSON")


def compact(document: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)
