"""The archive of Spark's classes, with a real JVM: what is made once is used by every session after it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.spark.archive_making import archive_of_this_machine
from ottla.spark.session import JAVA_OPTIONS_VARIABLE

_START = "from ottla.spark.session import build_session; build_session('x', 'local[1]', short_lived=True).stop()"


def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    archive = archive_of_this_machine()
    if archive is None:
        pytest.skip("this Java has no archive of its own to lay another over, or OTTLA_CLASS_ARCHIVE is off")
    if not archive.is_file():  # else `make setup` has made it
        made = subprocess.run([sys.executable, "-m", "ottla.spark.archive_making"], check=False)
        assert made.returncode == 0
    log = tmp_path / "loaded.txt"
    environment = {**os.environ, JAVA_OPTIONS_VARIABLE: f"-Xlog:class+load:file={log}"}
    subprocess.run([sys.executable, "-c", _START], env=environment, check=True)
    loaded = log.read_text().splitlines()
    from_archive = [line for line in loaded if "org.apache.spark." in line and "source: shared objects file" in line]
    from_jars = [line for line in loaded if "source: file:" in line or "source: jar:" in line]
    assert len(from_archive) > 1_000
    assert len(from_jars) < len(from_archive) / 20, from_jars[:20]
