"""The seven levels: in which direction, and with how many versions, a new schema is compared."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ottla.registry.compatibility.findings import Finding, Work
from ottla.registry.content import AVRO, JSON
from ottla.registry.errors import Code, RegistryError, TooComplex
from ottla.registry.schemas.parsed import ParsedSchema


class Level(NamedTuple):
    backward: bool
    """The new schema reads what was written with the old one."""
    forward: bool
    """The old schema reads what is written with the new one."""
    transitive: bool
    """All versions are asked, not the last alone."""


LEVELS = {
    "NONE": Level(backward=False, forward=False, transitive=False),
    "BACKWARD": Level(backward=True, forward=False, transitive=False),
    "BACKWARD_TRANSITIVE": Level(backward=True, forward=False, transitive=True),
    "FORWARD": Level(backward=False, forward=True, transitive=False),
    "FORWARD_TRANSITIVE": Level(backward=False, forward=True, transitive=True),
    "FULL": Level(backward=True, forward=True, transitive=False),
    "FULL_TRANSITIVE": Level(backward=True, forward=True, transitive=True),
}
DEFAULT_LEVEL = "BACKWARD"
POLICIES = ("STRICT", "LENIENT", "LOGICAL")


class Previous(NamedTuple):
    version: int
    schema: ParsedSchema


def level_of(text: Any) -> str:
    if not isinstance(text, str) or text.upper() not in LEVELS:
        raise RegistryError(
            Code.INVALID_LEVEL, f"Invalid compatibility level. Valid values are {', '.join(LEVELS).lower()}"
        )
    return text.upper()


def check_levels(new: ParsedSchema, previous: Sequence[Previous], level: str, *, policy: str = "STRICT") -> list[str]:
    """Reasons against `new`, in words; empty if it may follow. `previous` is oldest first."""
    found = LEVELS[level]
    asked = previous if found.transitive else previous[-1:]
    for each in reversed(asked):
        reasons = _reasons(new, each.schema, found, policy)
        if reasons:
            told = [str(reason) for reason in reasons]
            shown = each.schema.canonical.replace("\n", " ")[:2000]
            return [
                *told,
                f"{{oldSchemaVersion: {each.version}}}",
                f"{{oldSchema: '{shown}'}}",
                f"{{compatibility: '{level}'}}",
            ]
    return []


def _reasons(new: ParsedSchema, old: ParsedSchema, level: Level, policy: str) -> list[Finding]:
    if not (level.backward or level.forward):
        return []
    if new.schema_type != old.schema_type:
        text = f"the subject has schemas of type {old.schema_type}, not {new.schema_type}"
        return [Finding("SCHEMA_TYPE_CHANGED", "", text)]
    check = _checker(new.schema_type, policy)
    work = Work()
    try:
        backward = check(new, old, work) if level.backward else []
        return backward + (check(old, new, work) if level.forward else [])
    except RecursionError:
        raise TooComplex("these schemas are nested too deeply to be compared: make the schema simpler") from None


def _checker(schema_type: str, policy: str) -> Callable[[Any, Any, Work], list[Finding]]:
    """Reader, writer and the work it may be; imported when such a schema comes."""
    if schema_type == AVRO:
        from ottla.registry.compatibility.avro import check_avro  # noqa: PLC0415

        return lambda reader, writer, work: check_avro(reader.root, writer.root, work)
    if schema_type == JSON:
        from ottla.registry.compatibility.json_schema import check_json_schema  # noqa: PLC0415

        return lambda reader, writer, work: check_json_schema(reader, writer, work, lenient=policy == "LENIENT")
    from ottla.registry.compatibility.protobuf import check_protobuf  # noqa: PLC0415

    return check_protobuf
