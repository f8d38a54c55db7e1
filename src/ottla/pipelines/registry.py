"""Parts by their kind: those that come with Ottla, and those that other packages bring through entry points."""

import difflib
import importlib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar, cast

from ottla.pipelines.errors import PipelineError

T = TypeVar("T")


class UnknownKind(PipelineError):
    """There is no part of this kind, or its module cannot be imported. The message says which and why."""


class Registry(Generic[T]):
    """Looks a class up when it is first needed, so that one that cannot be imported breaks nobody else."""

    def __init__(self, what: str, built_in: Mapping[str, str], group: str) -> None:
        self._what = what
        self._places = dict(built_in)
        self._group = group
        self._found: dict[str, type[T]] = {}
        self._brought: dict[str, EntryPoint] | None = None

    def kinds(self) -> list[str]:
        return sorted({*self._places, *self._from_packages()})

    def get(self, kind: str) -> type[T]:
        if kind not in self._found:
            self._found[kind] = self._load(kind)
        return self._found[kind]

    def _load(self, kind: str) -> type[T]:
        brought = self._from_packages().get(kind)
        place = self._places.get(kind) or (brought.value if brought else None)
        if place is None:
            raise UnknownKind(f"there is no {self._what} `{kind}`" + hint(kind, self.kinds()))
        module, _, name = place.partition(":")
        try:
            found: Any = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise UnknownKind(f"the {self._what} `{kind}` ({place}) cannot be loaded: {error}") from error
        return cast("type[T]", found)

    def _from_packages(self) -> dict[str, EntryPoint]:
        if self._brought is None:
            self._brought = {point.name: point for point in entry_points(group=self._group)}
        return self._brought


def hint(word: str, known: list[str]) -> str:
    """`: did you mean x?`, or the list of what there is."""
    close = difflib.get_close_matches(word, known, n=1)
    return f": did you mean `{close[0]}`?" if close else f"; there is: {', '.join(known)}"
