"""Spark's classes as an archive that Java maps into memory: the JVM loads thousands of them at every start.

Java writes such an archive when it ends (class data sharing), and both that and keeping account of what goes into it
cost more than the archive saves one session. So a session never writes it: a process of its own does, once, at the
lowest priority, in `make setup` or after the first session on a machine has ended (`archive_making.py`). It is kept in
the user's cache, one for each Java and each PySpark. Java goes without one that was made from other jars than it finds,
and tells nobody: so its name says from which it was made.
"""

import atexit
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pyspark

from ottla.config.java import Candidate
from ottla.spark.java import cache_folders

SWITCH = "OTTLA_CLASS_ARCHIVE"
"""`off`: neither use nor make one."""
MAKER = "ottla.spark.archive_making"
QUIET = "-Xlog:cds*=off -Xlog:class+path=off"


def archive_place(java: Candidate, environment: Mapping[str, str], spark_home: Path | None = None) -> Path | None:
    """Where the archive is or will be; None where there can be none. It holds for the paths that classes were loaded
    from, hence for one SPARK_HOME."""
    if environment.get(SWITCH) == "off" or java.executable is None:
        return None
    if not (java.executable.parent.parent / "lib" / "server" / "classes.jsa").is_file():
        return None  # an archive of ours is laid over Java's own
    changed = java.executable.stat().st_mtime_ns
    known = f"{java.executable} {changed} {spark_home or ''} {_jars(Path(pyspark.__file__).parent)}"
    for folder in cache_folders(environment):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue  # a folder that cannot be written to: the next one will do
        return folder / f"spark-{pyspark.__version__}-{sha256(known.encode()).hexdigest()[:12]}.jsa"
    return None


def _jars(package: Path) -> str:
    """What Java compares: a PySpark that was installed again, in the same place, has jars of another time."""
    found = sorted((package / "jars").glob("*.jar"))
    return " ".join([str(package), *(f"{jar.name}:{(at := jar.stat()).st_mtime_ns}:{at.st_size}" for jar in found)])


def archive_options(archive: Path | None) -> str:
    """Options of the JVM that use the archive, if it is there."""
    if archive is None or not archive.is_file():
        return ""
    return f'{QUIET} -Xshare:auto -XX:SharedArchiveFile="{archive}"'


def make_when_this_ends(archive: Path | None) -> None:
    """Have the archive made, if there is none, when this process has no more need of the processor."""
    if archive is not None and not archive.is_file():
        atexit.register(start_maker)


def start_maker() -> None:
    """In the background, and on after this process and its terminal are gone. If it fails, sessions start as before."""
    subprocess.Popen(
        [sys.executable, "-m", MAKER],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
