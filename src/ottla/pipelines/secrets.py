"""`${env:NAME}` and `${file:PATH}` in a pipeline file: filled in last of all, and never shown.

A file keeps its references until a connector is opened. `Secrets` knows every value that it has given out, and takes
them out of any text that leaves the process. Passwords that somebody wrote into the file itself are hidden as well.
"""

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from ottla.pipelines.errors import PipelineError

_REFERENCE = re.compile(r"\$\{(?P<kind>[a-zA-Z_]*):(?P<name>[^}]*)\}")
_SHORTEST_HIDDEN = 3
_SECRET_NAME = re.compile(r"passw|secret|token|credential|jaas|[.]key$|[.]pem$", re.IGNORECASE)
# `//user:password@host`, and `password=...` as libpq and JAAS write it.
_PASSWORD = re.compile(
    r"""(?P<before>//[^/@\s:]*:)(?P<in_url>[^@\s]*)(?=@)|(?P<name>\b(?:ssl)?password\s*=\s*)"""
    r"""(?P<setting>"[^"]*"|'(?:[^'\\]|\\.)*'|[^\s&'";]+)""",
    re.IGNORECASE,
)

HIDDEN = "***"


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


def is_secret_name(name: str) -> bool:
    """Whether an option or setting of this name holds what nobody may see."""
    return _SECRET_NAME.search(name) is not None


def without_password(text: str) -> str:
    """URLs keep everything but their password. A reference to a secret is none."""

    def hidden(found: re.Match[str]) -> str:
        password = found["in_url"] if found["setting"] is None else found["setting"]
        return found.group(0) if references(password) else f"{found['before'] or found['name']}{HIDDEN}"

    return _PASSWORD.sub(hidden, text)


def passwords(value: Any) -> list[str]:
    """Those that stand in URLs and settings, however deep, and are no references."""
    if isinstance(value, str):
        found = (each["in_url"] or (each["setting"] or "").strip("\"'") for each in _PASSWORD.finditer(value))
        return [password for password in found if password and not references(password)]
    if isinstance(value, Mapping):
        return [found for item in value.values() for found in passwords(item)]
    if isinstance(value, list | tuple):
        return [found for item in value for found in passwords(item)]
    return []


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

    def learn(self, entry: Mapping[str, Any], secret: Collection[str] = ()) -> None:
        """Hide from now on what stands in the file itself: options that are `secret`, or named like it, and URLs."""
        hidden = {key for key in entry if key in secret or is_secret_name(key)}
        shown = without_password(str({key: None if key in hidden else value for key, value in entry.items()}))
        for text in [*(entry[key] for key in hidden), *passwords(entry)]:
            # What is like the user's name or the connector's is no secret, and messages would be unreadable without it.
            if isinstance(text, str) and not references(text) and text not in shown:
                self._remember(text, HIDDEN)

    def hide(self, text: str) -> str:
        """The text with every value that was given out replaced by its reference, and without passwords in URLs."""
        for value, reference in sorted(self._known.items(), key=lambda known: -len(known[0])):
            text = text.replace(value, reference)
        return without_password(text)

    def _remember(self, value: str, shown: str) -> None:
        for form in {value, unquote(value)}:  # in a URL it may be quoted, and in what a server says it is not
            if len(form) >= _SHORTEST_HIDDEN:  # hiding every `a` would make all messages unreadable
                self._known[form] = shown

    def _look_up(self, found: re.Match[str]) -> str:
        value = self._from_environment(found["name"]) if found["kind"] == "env" else self._from_file(found)
        self._remember(value, found.group(0))
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
