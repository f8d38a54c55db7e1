"""How a setting is declared: once, as a field with its type, default, bounds and a sentence.

ConfigError (OttlaError)    one or more settings are wrong; `.problems` lists every one of them in words
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from ottla.model.errors import OttlaError

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Dynamic = Literal["read-only", "per-listener", "per-broker", "cluster-wide"]
"""How a setting may change at run time. Per listener: only with that listener's prefix, and for one broker."""
Per = Literal["broker", "listener", "mechanism"]
"""What a setting may differ between: nothing in one broker, listeners, or SASL mechanisms of listeners too."""
Value = bool | int | float | str | tuple[str, ...] | None

_METADATA_KEY = "ottla.setting"


class ConfigError(OttlaError):
    """Settings that cannot be used, with every problem in words."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class SettingType(IntEnum):
    """Types of settings; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_RANGES: Mapping[SettingType, tuple[int, int]] = {
    SettingType.SHORT: (-(2**15), 2**15 - 1),
    SettingType.INT: (-(2**31), INT_MAX),
    SettingType.LONG: (-(2**63), LONG_MAX),
}


class Synonym(NamedTuple):
    """A broker setting that gives a topic setting its default, and what one unit of it is worth."""

    name: str
    factor: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything known about one setting."""

    name: str
    attribute: str
    type: SettingType
    default: Value
    doc: str
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] | None = None
    dynamic: Dynamic = "read-only"
    per: Per = "broker"
    synonyms: tuple[Synonym, ...] = ()
    check: Callable[[Any], str | None] | None = None
    fixed: str | None = None
    kafka_default: Value = None
    differs: str | None = None

    @property
    def sensitive(self) -> bool:
        return self.type is SettingType.PASSWORD

    def parse(self, text: str) -> Value:
        """The value of this text; ConfigError says what is wrong with it."""
        try:
            value = parse_text(self.type, text)
        except ValueError:
            raise ConfigError([f"{self.name}: {text!r} is not {_ARTICLE[self.type]}"]) from None
        problem = self.problem(value)
        if problem:
            raise ConfigError([f"{self.name}: {problem}"])
        return value

    def problem(self, value: Value) -> str | None:
        """Why this value is refused, or None."""
        if self.fixed is not None and value != self.default:
            return f"only {format_value(self.default)!r} is served: {self.fixed}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            if self.at_least is not None and value < self.at_least:
                return f"{value} is too small, it must be at least {self.at_least}"
            if self.at_most is not None and value > self.at_most:
                return f"{value} is too large, it must be at most {self.at_most}"
        if self.choices is not None:
            given = value if isinstance(value, tuple) else (str(value),)
            wrong = [word for word in given if word not in self.choices]
            if wrong:
                return f"{', '.join(wrong)} is not one of {', '.join(self.choices)}"
        if isinstance(value, tuple) and len(set(value)) != len(value):
            return "the list names the same entry twice"
        return self.check(value) if self.check else None


_ARTICLE: Mapping[SettingType, str] = {
    SettingType.BOOLEAN: "true or false",
    SettingType.STRING: "a string",
    SettingType.INT: "a whole number of 32 bits",
    SettingType.SHORT: "a whole number of 16 bits",
    SettingType.LONG: "a whole number of 64 bits",
    SettingType.DOUBLE: "a number",
    SettingType.LIST: "a list",
    SettingType.CLASS: "a class",
    SettingType.PASSWORD: "a password",
}


def parse_text(kind: SettingType, text: str) -> Value:
    """Read a value of this type; ValueError when it is not one."""
    text = text.strip()
    match kind:
        case SettingType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError(text)
            return text.lower() == "true"
        case SettingType.INT | SettingType.SHORT | SettingType.LONG:
            if not text.isascii() or "_" in text:
                raise ValueError(text)
            number, (low, high) = int(text), _RANGES[kind]
            if not low <= number <= high:
                raise ValueError(text)
            return number
        case SettingType.DOUBLE:
            real = float(text)
            if math.isnan(real):
                raise ValueError(text)
            return real
        case SettingType.LIST:
            return tuple(word.strip() for word in text.split(",")) if text else ()
        case _:
            return text


def format_value(value: Value) -> str | None:
    """The text of a value, as the protocol and the files write it."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def setting(
    default: Any,
    *,
    doc: str,
    type: SettingType | None = None,  # noqa: A002 - the word users know
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] | None = None,
    dynamic: Dynamic = "read-only",
    per: Per = "broker",
    synonyms: tuple[Synonym, ...] = (),
    check: Callable[[Any], str | None] | None = None,
    fixed: str | None = None,
    kafka_default: Value = None,
    differs: str | None = None,
) -> Any:
    """Declare a setting as a dataclass field.

    `fixed` gives the reason why no value but the default is served; `differs` says why the default is not
    Kafka's (`kafka_default`). The type is guessed from the default (whole numbers are INT).
    """
    declared = Setting(
        name="",
        attribute="",
        type=type or _guess(default),
        default=default,
        doc=doc,
        at_least=at_least,
        at_most=at_most,
        choices=choices,
        dynamic=dynamic,
        per=per,
        synonyms=synonyms,
        check=check,
        fixed=fixed,
        kafka_default=default if differs is None else kafka_default,
        differs=differs,
    )
    return dataclasses.field(default=default, metadata={_METADATA_KEY: declared})


def _guess(default: object) -> SettingType:
    match default:
        case bool():
            return SettingType.BOOLEAN
        case int():
            return SettingType.INT
        case float():
            return SettingType.DOUBLE
        case tuple():
            return SettingType.LIST
        case _:
            return SettingType.STRING


@functools.cache
def settings_of(cls: type) -> Mapping[str, Setting]:
    """Every setting of a class by its dotted name, in order: of its parts as it names them, then its own."""
    found: dict[str, Setting] = {}
    for part in cls.__bases__:
        if dataclasses.is_dataclass(part):
            found.update(settings_of(part))
    for field in dataclasses.fields(cls):
        declared = field.metadata.get(_METADATA_KEY)
        name = field.name.replace("_", ".")
        if declared is not None and name not in found:
            found[name] = dataclasses.replace(declared, name=name, attribute=field.name)
    return found
