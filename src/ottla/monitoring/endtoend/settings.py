"""How records are sent and read, and what is expected of them."""

from collections.abc import Mapping
from typing import NamedTuple

from ottla.client.settings import ClientSettings
from ottla.monitoring.endtoend.layout import Wanted
from ottla.monitoring.endtoend.slo import Objective

TOPIC = "ottla-monitor"


class EndToEndSettings(NamedTuple):
    name: str
    client: ClientSettings
    topic: str = TOPIC
    wanted: Wanted = Wanted()
    topic_configs: Mapping[str, str] = {"retention.ms": "3600000", "segment.ms": "3600000"}
    delay_s: float = 0.1
    """Between two records of a partition."""
    record_bytes: int = 100
    acks: int = -1
    write_timeout_s: float = 1.0
    """A record that is not acknowledged by then counts as bad."""
    latency_max_s: float = 20.0
    """A record that is not read by then counts as bad."""
    zero_is_unavailable: bool = True
    """Whether a partition that took no record for a minute counts as unavailable, as nothing else would tell."""
    rebalance_s: float = 600.0
    group: str = TOPIC
    commit_s: float = 4.0
    """Between two offset commits that are tried; 0 for none."""
    topic_probe_s: float = 60.0
    """Between two topics that are made and deleted again; 0 for none."""
    objective: Objective = Objective()
