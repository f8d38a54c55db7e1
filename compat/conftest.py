"""What the compatibility tests need: programs that must be there, and names that do not collide."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from compat.peer.ecosystem import fetch_ecosystem  # noqa: E402
from compat.peer.kafka import LIBS, PEER, Kafka, fetch, require, running  # noqa: E402
from compat.peer.spark_connector import jars  # noqa: E402

from ottla.spark.session import build_session  # noqa: E402

_counter = itertools.count(1)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test of this run uses, so that tests can share a broker."""
    return lambda prefix: f"{prefix}-{os.getpid()}-{next(_counter)}"


@pytest.fixture(scope="session")
def kafka_libs() -> Path:
    """The jars of Apache Kafka, fetched when missing."""
    return fetch()


@pytest.fixture(scope="session")
def kcat() -> str:
    """The program kcat, installed from Debian when that is possible."""
    if shutil.which("kcat") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "install", "-y", "-q", "kcat"], check=True, capture_output=True)
    return require("kcat", why="for its compatibility tests (Debian: apt install kcat)")


@pytest.fixture(scope="session")
def prometheus() -> str:
    """The program, installed from Debian when that is possible; promtool comes with it."""
    if shutil.which("prometheus") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", "prometheus"], check=True, capture_output=True
        )
    return require("prometheus", why="to check alert rules (Debian: apt install prometheus)")


@pytest.fixture(scope="session")
def java_classes(kafka_libs: Path) -> Path:
    """Our Java programs, compiled against kafka-clients."""
    compiler = require("javac", why="to compile the Java client's tests (Debian: apt install openjdk-17-jdk-headless)")
    target = PEER / "classes"
    sources = sorted(map(str, (ROOT / "compat" / "java").glob("*.java")))
    command = [compiler, "-Xlint:all", "-cp", f"{LIBS}/*", "-d", str(target), *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="session")
def ecosystem() -> Path:
    """Kafka Streams, Connect and MirrorMaker 2 are there, and our programs for them."""
    return fetch_ecosystem()


@pytest.fixture(scope="session")
def kafkajs() -> Path:
    """A folder of node modules with kafkajs in it."""
    folder = PEER / "node"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "node_modules" / "kafkajs").exists():
        npm = require("npm", why="to fetch kafkajs (Debian: apt install npm)")
        shutil.copy(ROOT / "compat" / "js" / "package.json", folder)
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a run, with Spark's own connector beside `format("ottla")`."""
    conf = {"spark.jars": jars(), "spark.driver.memory": "1g"}
    session = build_session("compat", "local[2]", conf)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def apache_kafka(kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """An Apache Kafka broker that runs while the tests do."""
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "1"}
    with running(tmp_path_factory.mktemp("apache-kafka"), settings=settings) as node:
        yield node
