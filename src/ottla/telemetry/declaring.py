"""Declares metrics. The name is what jmx_exporter makes of the MBean, in the rules that most dashboards rely on."""

import re

from ottla.telemetry.metric import Kind, Metric

METRICS: dict[str, Metric] = {}

_KEY = re.compile(r"\{(\w+)\}")
_METER = "PerSec"


def declare(
    name: str,
    mbean: str,
    attribute: str,
    kind: Kind,
    unit: str,
    doc: str,
    labels: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    rate_of: str = "",
) -> Metric:
    assert name not in METRICS, name
    METRICS[name] = Metric(name, mbean, attribute, kind, unit, doc, labels, also, rate_of)
    return METRICS[name]


def meter(mbean: str, unit: str, doc: str) -> Metric:
    """Counts what happens: `...name=XPerSec` is `x_total`."""
    assert _METER in mbean, mbean
    name = _name(mbean).removesuffix(_METER.lower()) + "_total"
    return declare(name, mbean, "Count", Kind.COUNTER, unit, doc, _labels(mbean))


def gauge(mbean: str, unit: str, doc: str, *, name: str = "", also: tuple[str, ...] = ()) -> Metric:
    return declare(name or _name(mbean), mbean, "Value", Kind.GAUGE, unit, doc, _labels(mbean), also)


def histogram(mbean: str, unit: str, doc: str) -> Metric:
    return declare(_name(mbean), mbean, "Count", Kind.HISTOGRAM, unit, doc, _labels(mbean))


def attribute(
    mbean: str, name: str, kind: Kind, unit: str, doc: str, *, also: tuple[str, ...] = (), called: str = ""
) -> Metric:
    """One of many attributes of an MBean without a name of its own, as Kafka's newer metrics have them."""
    return declare(called or f"{_name(mbean)}_{_plain(name)}", mbean, name, kind, unit, doc, _labels(mbean), also)


def rate(of: Metric, name: str, *, also: tuple[str, ...] = ()) -> Metric:
    """So many a second, over the last minute: an attribute beside that of the counter."""
    family = of.name.removesuffix("_total").removesuffix("_count")
    doc = f"`{of.name}` in a second, over the last minute."
    unit = f"{of.unit} per second"
    return declare(f"{family}_rate", of.mbean, name, Kind.GAUGE, unit, doc, of.labels, also, rate_of=of.name)


def own(
    name: str,
    kind: Kind,
    unit: str,
    doc: str,
    labels: tuple[str, ...] = (),
    mbean: str = "",
    also: tuple[str, ...] = (),
) -> Metric:
    """A metric that Kafka has not, or that another exporter named."""
    noun = "".join(part.capitalize() for part in name.removesuffix("_total").split("_")[1:])
    keys = "".join(f",{label}={{{label}}}" for label in labels)
    attribute = "Count" if kind is Kind.COUNTER else "Value"
    return declare(name, mbean or f"ottla:type={noun}{keys}", attribute, kind, unit, doc, labels, also)


def _name(mbean: str) -> str:
    domain, _, rest = mbean.partition(":")
    keys = dict(part.split("=", 1) for part in rest.split(","))
    return "_".join(_plain(part) for part in (domain, keys["type"], keys.get("name", "")) if part)


def _plain(text: str) -> str:
    return re.sub(r"\W", "_", text).lower()


def _labels(mbean: str) -> tuple[str, ...]:
    return tuple(_KEY.findall(mbean))
