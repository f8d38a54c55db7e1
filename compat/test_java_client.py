"""The Java client of Apache Kafka against a running broker, by programs of ours in compat/java."""

import subprocess
from pathlib import Path

import pytest
from compat.peer.program import own_java_command

from ottla.testing.running import RunningBroker

ASSIGNORS = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SCENARIOS = [
    ("admin",),
    ("admin-groups",),
    *(("codec", codec, "producer") for codec in CODECS),
    # The broker compresses anew when the topic asks for another codec: in a form that the Java client reads.
    *(("codec", "none", codec) for codec in CODECS[1:]),
    ("codec", "zstd", "uncompressed"),
    ("times",),
    ("large",),
    *(("assignor", assignor) for assignor in ASSIGNORS),
    ("static",),
    ("commits",),
    ("transactions",),
    ("transactions-copy", "classic"),
    ("transactions-copy", "consumer"),
    ("transactions-fencing",),
    ("transactions-timeout",),
    ("transactions-admin",),
    ("new-groups", "uniform"),
    ("new-groups", "range"),
    ("new-groups-pattern",),
    ("new-groups-upgrade",),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids="-".join)
def test_java_client(scenario: tuple[str, ...], java_classes: Path, ottla_broker: RunningBroker) -> None:
    command = own_java_command("Check", ottla_broker.bootstrap, *scenario, classes=java_classes)

    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip().endswith("passed")
