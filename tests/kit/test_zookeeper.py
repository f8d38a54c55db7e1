"""The ZooKeeper of the testing kit: real servers that come, go and stall as a test wants."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cluster import zookeeper_server
from ottla.testing.waiting import wait_until
from ottla.testing.zookeeper import ZooKeeperDidNotStart, ZooKeeperEnsemble, ask, zookeeper


def test_a_single_server_serves_and_comes_back() -> None:
    with zookeeper() as ensemble:
        (member,) = ensemble.members
        assert member.mode() == "standalone"
        member.kill()
        assert member.mode() is None
        assert ask(member.port, "ruok") == ""
        ensemble.start()
        assert ask(member.port, "ruok") == "imok"


def test_an_ensemble_survives_its_leader() -> None:
    with zookeeper(3) as ensemble:
        assert sorted(str(member.mode()) for member in ensemble.members) == ["follower", "follower", "leader"]
        first = ensemble.wait_for_leader()
        first.kill()
        second = ensemble.wait_for_leader()
        assert second is not first
        first.start()
        first.wait_until_serving()
        assert first.mode() == "follower"

        ensemble.pause()
        assert ensemble.leader() is None
        ensemble.resume()
        ensemble.wait_for_leader()


def test_a_server_that_cannot_start_shows_its_log(tmp_path: Path) -> None:
    ensemble = ZooKeeperEnsemble(tmp_path, settings={"tickTime": "often"})
    with pytest.raises(ZooKeeperDidNotStart, match=r"often"):
        ensemble.start()
    ensemble.close()


def test_a_server_that_stood_still_says_so() -> None:
    """Its brokers' sessions may have ended by that, and their logs cannot tell why."""
    with zookeeper(settings={"jvm.pause.warn-threshold.ms": 1}) as ensemble:
        (member,) = ensemble.members

        def told() -> bool:
            member.pause()
            member.resume()
            return "Detected pause in JVM" in member.log_text()

        wait_until(told, "the server tells of a pause", seconds=30.0)


def test_a_server_has_the_heap_that_it_is_given(tmp_path: Path) -> None:
    ensemble = ZooKeeperEnsemble(tmp_path, heap_mb=77)
    try:
        command = Path(f"/proc/{ensemble.start().members[0].pid}/cmdline").read_text()
    finally:
        ensemble.close()
    assert "-Xmx77m" in command.split("\0")


def test_the_server_dies_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom ottla.testing.zookeeper import ZooKeeperEnsemble\n"
        "ensemble = ZooKeeperEnsemble(Path(sys.argv[1])).start()\nprint(ensemble.members[0].pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid = int(done.stdout)

    def gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    wait_until(gone, "the server of a killed process has ended")


def test_without_pyspark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(zookeeper_server.NoZooKeeper, match=r"pip install 'ottla\[spark\]'"):
        zookeeper_server.jars()
