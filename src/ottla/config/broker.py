"""The settings of a broker: one class, made of parts that each have a module of their own.

A part is a frozen dataclass whose fields are declared with `setting` (setting.py); its file holds what changes
together, and what reads and checks those values. To add one:

1. write `config/<noun>.py` with `@dataclasses.dataclass(frozen=True, kw_only=True) class <Noun>Settings` (no slots:
   they come with the whole, and two bases that have some cannot be joined);
2. name it among the bases of BrokerSettings here: one line, which also places its settings in DescribeConfigs;
3. if values must be seen together to be judged, add its function to `CHECKS` in load.py;
4. take the names out of without_effect.py and refused.py, which have those that are not here, and run `make docs`.

Whoever needs one part alone takes it by its type: a BrokerSettings is a LogSettings.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import immutables

from ottla.config.access import AccessSettings
from ottla.config.client_quotas import ClientQuotaSettings
from ottla.config.group_coordinator import GroupCoordinatorSettings
from ottla.config.log import LogSettings
from ottla.config.log_cleaner import LogCleanerSettings
from ottla.config.metrics_access import MetricsAccessSettings
from ottla.config.monitoring import MonitoringSettings
from ottla.config.network import NetworkSettings
from ottla.config.node import NodeSettings
from ottla.config.password_encoder import PasswordEncoderSettings
from ottla.config.replication import ReplicationSettings
from ottla.config.requests import RequestSettings
from ottla.config.sasl import SaslSettings
from ottla.config.schema_registry import SchemaRegistrySettings
from ottla.config.setting import Setting, Value, settings_of
from ottla.config.tls import TlsSettings
from ottla.config.transactions import TransactionSettings
from ottla.config.zookeeper import ZookeeperSettings


class Note(NamedTuple):
    """Something to know about a file that is accepted."""

    text: str
    matters: bool = True
    """False of a value that is Kafka's default: nobody expects anything of it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings(
    NodeSettings,
    NetworkSettings,
    TlsSettings,
    SaslSettings,
    PasswordEncoderSettings,
    RequestSettings,
    LogSettings,
    LogCleanerSettings,
    ReplicationSettings,
    TransactionSettings,
    GroupCoordinatorSettings,
    ClientQuotaSettings,
    ZookeeperSettings,
    AccessSettings,
    MonitoringSettings,
    MetricsAccessSettings,
    SchemaRegistrySettings,
):
    """Every broker setting that is served. Lists are tuples; None is "not set"."""

    explicit: frozenset[str] = frozenset()
    """Names that the user gave, whether or not the value is the default: DescribeConfigs tells them apart."""
    per_listener: Mapping[str, Value] = immutables.Map()
    """What was given for single listeners, under whole names; per_listener.py reads it."""
    notes: tuple[Note, ...] = ()
    """What to say of the settings at start: those without effect, and old spellings."""


BROKER_SETTINGS: Mapping[str, Setting] = settings_of(BrokerSettings)
