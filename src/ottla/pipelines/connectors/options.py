"""What the options of all connectors have in common: they are checked, documented, and keep their secrets.

A field's description is what `docs/connectors.md` says about it. A field marked `SECRET` is never printed.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_type_hints

import msgspec

from ottla.pipelines.durations import seconds_of
from ottla.pipelines.secrets import HIDDEN, is_secret_name, references, without_password

T = TypeVar("T")

SECRET = msgspec.Meta(extra={"secret": True})
Secret = Annotated[str, SECRET]

SPARK_OPTION = "secretOptions"
"""Spark hides options of this name (`secret`) wherever it shows a plan."""


class ConnectorOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of an entry in a pipeline file."""

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def __rich_repr__(self) -> Iterator[tuple[str, Any]]:  # type: ignore[override]  # msgspec's own shows secrets
        secrets = secret_fields(type(self))
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name in secrets and value is not None:
                value = HIDDEN
            elif isinstance(value, str):
                value = without_password(value)
            yield name, value


def secret_fields(options: type) -> frozenset[str]:
    hints = get_type_hints(options, include_extras=True)
    return frozenset(name for name, hint in hints.items() if _is_secret(hint))


def _is_secret(hint: Any) -> bool:
    if SECRET in getattr(hint, "__metadata__", ()):
        return True
    return any(_is_secret(part) for part in getattr(hint, "__args__", ()))


def shown_entry(entry: Mapping[str, Any], options: type) -> dict[str, Any]:
    """An entry of a pipeline file as people may see it: with references, and without what stands in the file itself."""
    secrets = secret_fields(options)
    return {key: _shown(value, key in secrets or is_secret_name(key)) for key, value in entry.items()}


def _shown(value: Any, secret: bool) -> Any:
    if isinstance(value, str):
        return HIDDEN if secret and not references(value) else without_password(value)
    return HIDDEN if secret and value is not None else value


def refers(text: str) -> bool:
    """Whether a value is still to be filled in (`${env:NAME}`): then nothing can be said about it yet."""
    return "${" in text


def duration_problems(option: str, text: str) -> list[str]:
    if refers(text):
        return []
    try:
        seconds_of(text)
    except ValueError as error:
        return [f"{option}: {error}"]
    return []


def upsert_problems(mode: str, keys: tuple[str, ...]) -> list[str]:
    """`keys` and `mode: upsert` go together, in every database."""
    if mode == "upsert" and not keys:
        return ["keys: upsert needs the columns that tell rows apart, for instance `keys: [id]`"]
    if mode == "insert" and keys:
        return ["keys: only goes with `mode: upsert`"]
    return []


def to_spark(options: msgspec.Struct) -> dict[str, str]:
    """How a struct reaches a Python data source: as one option that Spark never shows."""
    return {SPARK_OPTION: msgspec.json.encode(options).decode()}


def from_spark(options: Any, kind: type[T]) -> T:
    return msgspec.json.decode(options[SPARK_OPTION], type=kind)
