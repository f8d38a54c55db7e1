"""kafka-python's own integration tests, from its source distribution, against our broker.

The distribution leaves out two of the suite's files: the package marker, and a module that starts Kafka. With
KAFKA_URI set nothing is started, so an empty class in its place is enough.
"""

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ottla.testing import RunningBroker, broker

NO_SECURITY = "ACLs, TLS and SASL are not served yet"

# Names of tests that may fail, each with the reason. One that passes must be taken off the list.
EXPECTED_TO_FAIL = {
    "test_create_describe_delete_acls": NO_SECURITY,
    "test_describe_metadata_quorum": "there is no KRaft quorum to describe, so the API is not served",
    "test_ssl_handshake": NO_SECURITY,
    "test_legacy_kafka_client_ssl": NO_SECURITY,
}
PASSING_MIN = 53
SUITE_SECONDS_MAX = 480

STAND_IN_FOR_SERVICE = '''
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port


class SpawnedService:
    """Never started: KAFKA_URI names a broker that runs."""


from kafka import KafkaConsumer

KafkaConsumer.DEFAULT_CONFIG["metadata_max_age_ms"] = 2_000
'''
"""A consumer of 3.0.12 that subscribes while its first request for metadata is on its way, which names no topics, takes
the answer for the one it wants, and looks again when that is too old, after five minutes. A slow machine is enough."""


@pytest.fixture
def suite() -> Path:
    """The unpacked distribution of the version that is installed; fetched once and kept beside the environment."""
    version = importlib.metadata.version("kafka-python")
    cache = Path(sys.prefix) / "share" / "ottla-tests"
    unpacked = cache / f"kafka_python-{version}"
    if not (unpacked / "test" / "__init__.py").exists():
        _download(version, cache)
        with tarfile.open(cache / f"kafka_python-{version}.tar.gz") as archive:
            if hasattr(tarfile, "data_filter"):  # not before Python 3.11.4, and Debian 12 has 3.11.2
                archive.extraction_filter = tarfile.data_filter
            archive.extractall(cache)
        (unpacked / "test" / "__init__.py").touch()
    (unpacked / "test" / "service.py").write_text(STAND_IN_FOR_SERVICE)
    return unpacked


def _download(version: str, into: Path) -> None:
    wanted = ["download", "--no-binary", ":all:", "--no-deps", "--dest", str(into), f"kafka-python=={version}"]
    # pip asks a distribution for its metadata, which takes setuptools: ours if there is one, else one that pip fetches.
    for how in (["--no-build-isolation"], []):
        done = subprocess.run(
            [*_pip(), *wanted, *how], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
        )
        if not done.returncode:
            return
    pytest.fail(f"kafka-python's source distribution could not be fetched from a package index:\n{done.stdout}")


def _pip() -> list[str]:
    """This environment's pip or, where it was made without one, that of the interpreter it was made from."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    return [getattr(sys, "_base_executable", sys.executable), "-m", "pip", "--python", sys.executable]


@pytest.fixture
def running() -> Iterator[RunningBroker]:
    """As the suite expects it: broker 0, four partitions, and its advertised address given explicitly."""
    with broker({"node.id": 0, "num.partitions": 4}) as started:
        yield started.restart({"advertised.listeners": f"PLAINTEXT://{started.bootstrap}"})


@pytest.mark.timeout(SUITE_SECONDS_MAX + 60)
def test_the_suite_passes_but_for_named_cases(suite: Path, running: RunningBroker, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "test/integration", "-q", "--tb=short", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", "-p", "no:ottla", "-o", "log_level=WARNING", "--timeout=60"]
    environment = {
        **os.environ,
        "KAFKA_URI": f"kafka://{running.bootstrap}",
        "KAFKA_VERSION": "4.3",
        "KAFKA_ROOT": str(tmp_path),  # must exist, is not looked into
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        command, cwd=suite, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True,
        timeout=SUITE_SECONDS_MAX,
    )  # fmt: skip
    assert report.exists(), done.stdout
    passed, failed = _outcomes(report)
    unexpected = failed - EXPECTED_TO_FAIL.keys()
    assert not unexpected, f"failed: {sorted(unexpected)}\n{done.stdout}"
    assert sorted(EXPECTED_TO_FAIL.keys() - failed) == [], "these pass now: take them off the list"
    assert len(passed) >= PASSING_MIN, f"only {len(passed)} tests ran to a good end\n{done.stdout}"


def _outcomes(report: Path) -> tuple[set[str], set[str]]:
    passed: set[str] = set()
    failed: set[str] = set()
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"]
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
        elif case.find("skipped") is None:
            passed.add(name)
    return passed - failed, failed
