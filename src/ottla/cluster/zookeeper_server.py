"""How a ZooKeeper server is started: its jars, its command line, its configuration file.

The jars come with the pip package pyspark, which is looked for and never imported: a broker needs no Spark. Everything
else of ZooKeeper (snapshots, elections among its members) is ZooKeeper's own.
"""

import importlib.util
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.config.java import find_java
from ottla.model.errors import OttlaError

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
HEAP_MB = 512
"""As much as Kafka gives its own. All nodes lie in it, and one that is nearly full stands still for longer than a
broker's session lasts (docs/scaling.md has what partitions need)."""
PAUSE_MS_TOLD = 1_000
"""A server that stood still for so long says so: the brokers that it forgot meanwhile would look like the culprits."""
CLIENT_PORT = 2181
PEER_PORT = 2888
ELECTION_PORT = 3888

# What the server loads; all of Spark's jars on the class path would cost it half a second at every start.
_NEEDED = re.compile(
    r"(zookeeper|zookeeper-jute|slf4j-api|log4j-api|log4j-core|log4j-slf4j2-impl|metrics-core|snappy-java|commons-io"
    r"|netty-(buffer|codec|codec-base|common|handler|resolver|transport|transport-native-unix-common"
    r"|transport-classes-epoll))-\d[\w.]*\.jar"
)
_LOG_SETTINGS = Path(__file__).with_name("zookeeper_log4j2.properties")

# The first compiler alone is enough for a server that mostly waits, and starts it in half the time.
_WORDS = "srvr,ruok,mntr,conf,cons,stat"
# For files that do not say: the words that monitoring asks, and no admin server, whose classes are not among the jars.
_DEFAULTS = (f"-Dzookeeper.4lw.commands.whitelist={_WORDS}", "-Dzookeeper.admin.enableServer=false")

_JVM_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:+ExitOnOutOfMemoryError")


class NoZooKeeper(OttlaError):
    """There are no jars to run; the message says how to get them."""


class Member(NamedTuple):
    """One server of an ensemble, as its configuration names it: `server.<id>=<host>:<peer port>:<election port>`."""

    id: int
    host: str
    peer_port: int = PEER_PORT
    election_port: int = ELECTION_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.peer_port}:{self.election_port}"


def jars() -> list[Path]:
    """The files of the class path."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NoZooKeeper(
            "ZooKeeper comes in the package pyspark, which is not installed. To mend it, "
            "pip install 'ottla[spark]', or run a ZooKeeper from elsewhere"
        )
    folder = Path(spec.origin).parent / "jars"
    found = sorted(path for path in folder.glob("*.jar") if _NEEDED.fullmatch(path.name))
    if not any(path.name.startswith("zookeeper-3") for path in found):
        raise NoZooKeeper(f"there is no ZooKeeper in {folder}: install the package pyspark again")
    return found


def command(
    environment: Mapping[str, str] = os.environ, *, heap_mb: int = HEAP_MB, log_level: str = "info"
) -> list[str]:
    """What runs a server in the foreground, its log on standard error; the path of its configuration comes last."""
    java = find_java(environment, wanted_by="ZooKeeper").executable
    assert java is not None
    return [
        str(java),
        f"-Xmx{heap_mb}m",
        *_JVM_OPTIONS,
        *_DEFAULTS,
        f"-Dlog4j2.configurationFile={_LOG_SETTINGS.as_uri()}",
        f"-Dottla.zookeeper.log.level={log_level}",
        "-cp",
        os.pathsep.join(map(str, jars())),
        MAIN_CLASS,
    ]


def write_config(
    data_dir: Path,
    *,
    host: str = "127.0.0.1",
    port: int = CLIENT_PORT,
    my_id: int | None = None,
    members: Sequence[Member] = (),
    settings: Mapping[str, str | int] | None = None,
) -> Path:
    """Write `zoo.cfg` (and `myid`, in an ensemble) into the data directory; the path of the former."""
    data_dir.mkdir(parents=True, exist_ok=True)
    lines: dict[str, str | int] = {
        "tickTime": 2_000,
        "initLimit": 10,
        "syncLimit": 5,
        "dataDir": str(data_dir),
        "clientPort": port,
        "clientPortAddress": host,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": _WORDS,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
        "jvm.pause.monitor": "true",
        "jvm.pause.warn-threshold.ms": PAUSE_MS_TOLD,
        **{f"server.{member.id}": str(member) for member in members},
        **(settings or {}),
    }
    path = data_dir / "zoo.cfg"
    path.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    if members:
        (data_dir / "myid").write_text(f"{my_id}\n")
    return path
