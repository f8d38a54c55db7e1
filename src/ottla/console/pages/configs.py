"""Settings of topics and brokers as they are shown: the value, where it comes from, what it would be otherwise."""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.client.admin import ConfigSource
from ottla.protocol.messages.describe_configs import DescribeConfigsResourceResult

_OWN = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigSource.DYNAMIC_GROUP_CONFIG)


class Setting(NamedTuple):
    name: str
    value: str | None
    """None where it is a secret."""
    source: str
    own: bool
    """Whether somebody has set it on this thing itself."""
    default: str | None
    """What it would be without: the next in line, a broker's setting or Kafka's default."""
    default_source: str
    read_only: bool
    sensitive: bool
    doc: str


def settings_of(told: Sequence[DescribeConfigsResourceResult]) -> list[Setting]:
    return [_setting(each) for each in told]


def _setting(each: DescribeConfigsResourceResult) -> Setting:
    source = _source(each.config_source)
    own = source in _OWN
    # The first synonym is the value itself where somebody has set it here; the one behind it is what would hold else.
    others = [synonym for synonym in each.synonyms if _source(synonym.source) is not source] if own else []
    default = in_unit_of(each.name, others[0].name, others[0].value) if others else (None if own else each.value)
    return Setting(
        each.name,
        None if each.is_sensitive else each.value,
        source.name,
        own,
        default,
        _source(others[0].source).name if others else source.name,
        each.read_only,
        each.is_sensitive,
        each.documentation or "",
    )


_MS = {".hours": 3_600_000, ".minutes": 60_000}


def in_unit_of(name: str, other: str, value: str | None) -> str | None:
    """A topic's milliseconds may follow from a broker's hours or minutes."""
    factor = next((ms for suffix, ms in _MS.items() if other.endswith(suffix) and name.endswith(".ms")), 1)
    return str(int(value) * factor) if value and factor > 1 and value.lstrip("-").isdigit() else value


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN
