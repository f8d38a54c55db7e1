"""Spark's classes as an archive that Java maps into memory: the JVM loads thousands of them at every start.

Java writes such an archive when it ends (class data sharing), so the first session on a machine leaves one behind for
all that follow. It is kept in the user's cache, one for each Java and each PySpark; Java checks by itself that it fits,
and goes without it if it does not.
"""

import contextlib
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pyspark

from ottla.config.java import Candidate
from ottla.spark.java import cache_folders

SWITCH = "OTTLA_CLASS_ARCHIVE"
"""`off`: neither use nor write one."""

_QUIET = "-Xlog:cds*=off -Xlog:class+path=off"
_UNFINISHED_SUFFIX = ".from-"


def archive_options(java: Candidate, environment: Mapping[str, str]) -> str:
    """Options of the JVM that use the archive, or write it; nothing where there can be none."""
    if environment.get(SWITCH) == "off" or java.executable is None:
        return ""
    if not (java.executable.parent.parent / "lib" / "server" / "classes.jsa").is_file():
        return ""  # an archive of ours is laid over Java's own
    known = f"{java.executable} {java.executable.stat().st_mtime_ns} {pyspark.__file__} {pyspark.__version__}"
    for folder in cache_folders(environment):
        archive = folder / f"spark-{pyspark.__version__}-{sha256(known.encode()).hexdigest()[:12]}.jsa"
        try:
            archive.parent.mkdir(parents=True, exist_ok=True)
            _take_finished(archive)
        except OSError:
            continue  # a folder that cannot be written to: the next one will do
        if archive.is_file():
            return f'{_QUIET} -Xshare:auto -XX:SharedArchiveFile="{archive}"'
        return f'{_QUIET} -XX:ArchiveClassesAtExit="{archive}{_UNFINISHED_SUFFIX}{os.getpid()}"'
    return ""


def _take_finished(archive: Path) -> None:
    """What a JVM has written is taken when the process that started it, and so the JVM, is gone."""
    for found in archive.parent.glob(f"{archive.name}{_UNFINISHED_SUFFIX}*"):
        if _is_alive(int(found.name.rpartition("-")[2])):
            continue
        with contextlib.suppress(FileNotFoundError):  # somebody was quicker
            if archive.is_file():
                found.unlink()
            else:
                found.rename(archive)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
