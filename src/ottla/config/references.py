"""Values that stand elsewhere: `${env:NAME}`, `${file:PATH:KEY}`, `${file:PATH}` and `${dir:PATH:NAME}` in settings.

The first is an environment variable, the second a key of a properties file, the others a whole file without its last
line end. These are Kafka's own providers; config.providers may give them other names. Errors name places, never values.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ottla.config.properties import parse_properties
from ottla.config.setting import ConfigError

_REFERENCE = re.compile(r"\$\{(?P<provider>[A-Za-z][A-Za-z0-9_-]*):(?P<place>[^}]*)\}")
PROVIDERS = "config.providers"
_CLASSES = {
    "org.apache.kafka.common.config.provider.EnvVarConfigProvider": "env",
    "org.apache.kafka.common.config.provider.FileConfigProvider": "file",
    "org.apache.kafka.common.config.provider.DirectoryConfigProvider": "dir",
}
_KINDS = frozenset(_CLASSES.values())


def resolve(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The settings with every reference replaced, and without config.providers. ConfigError lists what is missing."""
    problems: list[str] = []
    kinds = _providers(given, problems)
    environment = os.environ if environment is None else environment
    found: dict[str, str] = {}
    for name, text in given.items():
        if name == PROVIDERS or name.startswith(f"{PROVIDERS}."):
            continue

        def look_up(match: re.Match[str], name: str = name) -> str:
            kind = kinds.get(match["provider"])
            if kind is None:
                return match.group()  # as in Kafka: nobody says that it is a reference
            try:
                return _value(kind, match["place"], environment)
            except LookupError as error:
                problems.append(f"{name}: {match.group()} cannot be read: {error.args[0]}")
                return ""

        found[name] = _REFERENCE.sub(look_up, text)
    if problems:
        raise ConfigError(problems)
    return found


def _providers(given: Mapping[str, str], problems: list[str]) -> dict[str, str]:
    kinds = {kind: kind for kind in _KINDS}
    for name in filter(None, (word.strip() for word in given.get(PROVIDERS, "").split(","))):
        named = given.get(f"{PROVIDERS}.{name}.class", "").strip()
        kind = _CLASSES.get(named, name if not named and name in _KINDS else None)
        if kind is None:
            problems.append(f"{PROVIDERS}.{name}.class: classes of the JVM cannot be loaded here; {_known()}")
        else:
            kinds[name] = kind
    return kinds


def _known() -> str:
    return f"there are {', '.join(_CLASSES)}"


def _value(kind: str, place: str, environment: Mapping[str, str]) -> str:
    """LookupError says why there is none."""
    if kind == "env":
        name = place.removeprefix(":")  # Kafka's provider wants an empty path before the name
        if name not in environment:
            raise LookupError(f"there is no environment variable {name}")
        return environment[name]
    path, colon, key = place.partition(":")
    if kind == "dir":
        return _read(os.path.join(path, key)).rstrip("\r\n")
    text = _read(path)
    if not colon:
        return text.rstrip("\r\n")
    try:
        values = parse_properties(text)
    except ConfigError:
        raise LookupError(f"{path} is no properties file") from None
    if key not in values:
        raise LookupError(f"{path} has no {key}")
    return values[key]


def _read(path: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise LookupError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise LookupError(f"{path}: it is not UTF-8 text") from None
