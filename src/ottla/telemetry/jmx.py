"""Metrics as JMX knows them: MBeans with names, patterns of names, and attributes. Pure.

ObjectNames are compared by their keys, whatever order they stand in; a pattern without a final `*` has exactly the keys
of what it matches.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.model.errors import OttlaError
from ottla.telemetry.metric import Distribution, Kind, Metric, Table, Value

METER = "PerSec"
PERCENTILES = tuple(f"{each}Percentile" for each in ("50th", "75th", "95th", "98th", "99th", "999th"))
_KEY = re.compile(r'([^=,"]+)=("(?:[^"\\]|\\.)*"|[^,"]*)(?:,|$)')
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_SPECIAL = re.compile(r'[,=:"*?\n]')

Beans = dict[str, dict[str, object]]
"""Attributes by the canonical name of their MBean."""


class BadName(OttlaError):
    """What should be the name of an MBean, or a pattern of names, is none."""


class ObjectName(NamedTuple):
    domain: str
    keys: Mapping[str, str]
    is_open: bool = False
    """Other keys may be there as well."""

    def __str__(self) -> str:
        """As JMX writes it when order is not to matter: by key."""
        return self.domain + ":" + ",".join(f"{key}={self.keys[key]}" for key in sorted(self.keys))

    @property
    def is_pattern(self) -> bool:
        return self.is_open or any("*" in text or "?" in text for text in (self.domain, *self.keys.values()))

    def matches(self, other: "ObjectName") -> bool:
        """Whether `other`, which is no pattern, is one of those that this pattern means."""
        if not _fits(self.domain, other.domain):
            return False
        if not self.is_open and self.keys.keys() != other.keys.keys():
            return False
        return all(key in other.keys and _fits(text, other.keys[key]) for key, text in self.keys.items())

    def may_match(self, template: "ObjectName") -> bool:
        """Whether it can mean MBeans of a metric, whose varying keys are still placeholders."""
        if not _fits(self.domain, template.domain):
            return False
        if not self.is_open and self.keys.keys() != template.keys.keys():
            return False
        return all(
            key in template.keys and (_PLACEHOLDER.search(template.keys[key]) or _fits(text, template.keys[key]))
            for key, text in self.keys.items()
        )


def parse(text: str) -> ObjectName:
    domain, colon, rest = text.partition(":")
    if not colon or not rest:
        raise BadName(f"'{text}' is no name of an MBean: domain:key=value,... is")
    keys: dict[str, str] = {}
    is_open = False
    position = 0
    while position < len(rest):
        if rest[position] == "*" and rest[position + 1 : position + 2] in ("", ","):
            is_open = True
            position += 2
            continue
        found = _KEY.match(rest, position)
        if found is None or found[1] in keys:
            raise BadName(f"'{text}' is no name of an MBean: look at '{rest[position:]}'")
        keys[found[1]] = found[2]
        position = found.end()
    return ObjectName(domain, keys, is_open)


def _fits(pattern: str, text: str) -> bool:
    if "*" not in pattern and "?" not in pattern:
        return pattern == text
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))


def template_of(metric: Metric) -> ObjectName:
    return parse(metric.mbean)


def name_of(metric: Metric, labels: tuple[str, ...]) -> ObjectName:
    """Of the MBean that has the metric, for these labels. A label without a value is a key that is not there."""
    values = dict(zip(metric.labels, labels, strict=True))
    template = template_of(metric)
    keys = {}
    for key, text in template.keys.items():
        found = _PLACEHOLDER.fullmatch(text)
        value = values[found[1]] if found else text
        if value or not found:
            keys[key] = _quoted(value) if found else value
    return ObjectName(template.domain, keys)


def _quoted(value: str) -> str:
    if not _SPECIAL.search(value):
        return value
    escaped = re.sub(r'([\\*?"])', r"\\\1", value).replace("\n", r"\n")
    return f'"{escaped}"'


class Rates(NamedTuple):
    """Of a meter, a second: since the start, and weighted towards the last 1, 5 and 15 minutes."""

    mean: float
    one_minute: float
    five_minutes: float
    fifteen_minutes: float


def is_meter(metric: Metric) -> bool:
    return metric.kind is Kind.COUNTER and metric.attribute == "Count" and METER in metric.mbean


def attributes(metric: Metric, value: Value, rates: Rates | None = None) -> Iterator[tuple[str, object]]:
    """What the MBean of a metric says."""
    if isinstance(value, Distribution):
        yield "Count", value.number
        yield from (("Min", value.least), ("Max", value.most), ("Mean", value.mean), ("StdDev", value.deviation))
        yield from zip(PERCENTILES, value.quantiles, strict=True)
        return
    yield metric.attribute, value
    if is_meter(metric):
        rates = rates or Rates(0.0, 0.0, 0.0, 0.0)
        yield from (("MeanRate", rates.mean), ("OneMinuteRate", rates.one_minute))
        yield from (("FiveMinuteRate", rates.five_minutes), ("FifteenMinuteRate", rates.fifteen_minutes))
        yield from (("EventType", metric.unit), ("RateUnit", "SECONDS"))


def add_beans(beans: Beans, table: Table, rates: Mapping[tuple[Metric, tuple[str, ...]], Rates]) -> None:
    for position, metric in enumerate(table.metrics):
        for labels, values in table.rows:
            bean = beans.setdefault(str(name_of(metric, labels)), {})
            bean.update(attributes(metric, values[position], rates.get((metric, labels))))
