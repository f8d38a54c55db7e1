"""The testing kit itself: what it starts, what it says when that fails, and what it leaves behind."""

import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from ottla.testing import BrokerDidNotStart, RunningBroker, broker
from ottla.testing.ledger import Ledger, Stamp, audit
from ottla.testing.load import quiet
from ottla.testing.waiting import wait_until


def test_a_broker_starts_with_nothing_in_it_that_it_does_not_need() -> None:
    """It starts well under a second (docs/benchmarks.md has the figure). What would spoil that is a large library."""
    with broker() as running:
        AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet).list_topics(timeout=60)
        loaded = Path(f"/proc/{running.pid}/maps").read_text()
    large = ("numpy", "pandas", "pyarrow", "confluent_kafka", "google_re2", "psycopg")
    assert [name for name in large if f"/{name}" in loaded] == []


def test_settings_that_are_wrong_are_told() -> None:
    with (
        pytest.raises(BrokerDidNotStart, match=r"num.partitons.*did you mean num.partitions"),
        broker({"num.partitons": 3}),
    ):
        pass


@pytest.mark.ottla({"num.partitions": 3}, auto_create_topics_enable=True)
def test_the_marker_gives_settings(ottla_fresh_broker: RunningBroker) -> None:
    admin = AdminClient({"bootstrap.servers": ottla_fresh_broker.bootstrap}, logger=quiet)
    producer = Producer({"bootstrap.servers": ottla_fresh_broker.bootstrap}, logger=quiet)
    producer.produce("three", b"x")
    assert producer.flush(20) == 0
    assert len(admin.list_topics("three", timeout=30).topics["three"].partitions) == 3


def test_a_marker_that_nothing_would_read_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n@pytest.mark.ottla(num_partitions=3)\ndef test_it(ottla_broker): pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_it.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "ottla_fresh_broker, which this test does not use" in done.stdout + done.stderr


def test_the_plugin_loads_nothing_heavy() -> None:
    """It is loaded at every start of pytest, in projects that never use a broker."""
    code = (
        "import sys, pytest\nbefore = set(sys.modules)\nimport ottla.testing.plugin\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [
        name for name in loaded if name.startswith("ottla.") and not name.startswith(("ottla.testing", "ottla.model"))
    ] == []
    assert not {"asyncio", "uvloop", "msgspec", "confluent_kafka", "rich", "sqlite3"} & set(loaded)


def test_address_and_data_stay_over_a_restart(ottla_fresh_broker: RunningBroker) -> None:
    running = ottla_fresh_broker
    admin = AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet)
    cluster, address, pid = admin.list_topics(timeout=30).cluster_id, running.bootstrap, running.pid
    running.restart({"num.partitions": 7})
    assert running.bootstrap == address
    assert running.pid != pid
    assert (
        AdminClient({"bootstrap.servers": running.bootstrap}, logger=quiet).list_topics(timeout=30).cluster_id
        == cluster
    )


def test_a_directory_that_is_given_stays_and_one_that_is_made_goes(tmp_path: Path) -> None:
    with broker(data_dir=tmp_path) as running:
        assert running.log_dirs == [tmp_path / "data"]
    assert (tmp_path / "data" / "metadata.sqlite").exists()
    with broker() as running:
        made = running.data_dir
        assert made.exists()
    assert not made.exists()


def test_the_broker_dies_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom ottla.testing import RunningBroker\nfrom pathlib import Path\n"
        "running = RunningBroker(Path(sys.argv[1]), {}).start()\nprint(running.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    pid = int(done.stdout)

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until(gone, "the broker of a killed process has ended")


def test_the_audit_sees_every_kind_of_damage() -> None:
    """The kill tests stand or fall with it, so it must be able to fail itself."""
    ledger = Ledger()
    log = [(0, number, Stamp(1, 0, number).to_value(20)) for number in range(10)]
    for _, offset, value in log:
        ledger.acknowledged(Stamp.of_value(value), offset)
    promised = ledger.promised()
    assert audit(promised, log).clean
    assert audit(promised, log[:-2]).lost == 2
    assert audit(promised, [*log, (0, 10, log[3][2])]).doubled == 1
    gap = [*log[:4], *((0, offset - 1, value) for _, offset, value in log[5:])]
    assert audit(promised, gap).out_of_order == 1
    assert audit(promised, gap).misplaced > 0
    assert audit(promised, [(1, offset, value) for _, offset, value in log]).misplaced == 10
    assert audit({(1, 0): array("q", [-1] * 10)}, log).clean, "where it is was not told"
    assert audit({(1, 0): array("q", [-1] * 12)}, log).lost == 2
    ledger.acknowledged(Stamp(1, 0, 12), 12)
    assert ledger.refusals
