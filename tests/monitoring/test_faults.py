"""A full disk shows in what the monitor says of a broker, and so does its end."""

import resource
from collections.abc import Callable

import pytest
from tests.monitoring.end_to_end import running, wait_for_more, wait_until_noticed

from ottla.monitoring.clients import monitor_client
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.testing import RunningBroker
from ottla.testing.waiting import wait_until

LIMIT_BYTES = 512


@pytest.mark.one_broker("sets a limit on its process")
def test_a_disk_that_is_full_is_noticed(ottla_fresh_broker: RunningBroker, unique: Callable[[str], str]) -> None:
    client = monitor_client(ottla_fresh_broker.bootstrap, {})
    settings = EndToEndSettings("c", client, unique("full"), delay_s=0.05, commit_s=0.2, topic_probe_s=0.0)
    pid = ottla_fresh_broker.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    with running(settings) as monitor:
        wait_until(lambda: monitor.write.good > 10, "more is written than files may hold", seconds=60)
        wait_until(lambda: monitor.commits.level.good, "offsets are committed", seconds=60)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
        try:
            wait_until_noticed("a disk is full", monitor, partitions={0}, seconds=30)
            assert "cannot append" in monitor.last_error, monitor.last_error
        finally:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_for_more(monitor, good=True, partitions={0}, seconds=60)
        assert monitor.counts["lost"] == 0
