"""`${env:NAME}` and `${file:PATH}` in a pipeline file: filled in late, and never shown.

A file keeps its references until a connector is opened. `Secrets` knows every value that it has given out, and takes
them out of any text that leaves the process.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.pipelines.errors import PipelineError

_REFERENCE = re.compile(r"\$\{(?P<kind>[a-zA-Z_]*):(?P<name>[^}]*)\}")
_SHORTEST_HIDDEN = 3


class MissingSecret(PipelineError):
    """A secret is not where the file says; the message names the place, never a value."""


def references(value: Any) -> list[str]:
    """Every reference in a value, however deep, in the order they stand."""
    if isinstance(value, str):
        return [found.group(0) for found in _REFERENCE.finditer(value)]
    if isinstance(value, Mapping):
        return [found for item in value.values() for found in references(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in references(item)]
    return []


def misspelt(value: Any) -> list[str]:
    """What is wrong with the references of a value, as far as one can see without looking any secret up."""
    problems = []
    for reference in references(value):
        found = _REFERENCE.fullmatch(reference)
        assert found is not None
        if found["kind"] not in ("env", "file"):
            problems.append(f"`{reference}`: write ${{env:NAME}} or ${{file:PATH}}")
        elif not found["name"].strip():
            problems.append(f"`{reference}` names nothing")
    return problems


class Secrets:
    """Looks secrets up, and hides them again. `base_dir` is where relative paths start: the file's own folder."""

    def __init__(self, base_dir: Path, environment: Mapping[str, str] | None = None) -> None:
        self._base_dir = base_dir
        self._environment = os.environ if environment is None else environment
        self._known: dict[str, str] = {}

    def fill_in(self, value: Any) -> Any:
        """The same value with its references replaced, however deep they are."""
        if isinstance(value, str):
            return _REFERENCE.sub(self._look_up, value)
        if isinstance(value, Mapping):
            return {key: self.fill_in(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.fill_in(item) for item in value]
        return value

    def hide(self, text: str) -> str:
        """The text with every value that was given out replaced by its reference."""
        for value, reference in sorted(self._known.items(), key=lambda known: -len(known[0])):
            text = text.replace(value, reference)
        return text

    def _look_up(self, found: re.Match[str]) -> str:
        value = self._from_environment(found["name"]) if found["kind"] == "env" else self._from_file(found)
        if len(value) >= _SHORTEST_HIDDEN:  # hiding every `a` would make all messages unreadable
            self._known[value] = found.group(0)
        return value

    def _from_environment(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise MissingSecret(f"${{env:{name}}}: there is no such environment variable; export {name}=...")
        return value

    def _from_file(self, found: re.Match[str]) -> str:
        if found["kind"] != "file":
            raise MissingSecret(f"`{found.group(0)}`: write ${{env:NAME}} or ${{file:PATH}}")
        try:
            return (self._base_dir / Path(found["name"]).expanduser()).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise MissingSecret(f"{found.group(0)} cannot be read: {reason}") from None
