"""A SPARK_HOME whose Python is the one that is installed.

Spark puts `$SPARK_HOME/python/lib/pyspark.zip` before everything else that its Python workers could import, and a zip
holds no bytecode: every process compiles PySpark anew, for a second or more. The package itself is installed beside it.
So a session on this machine gets a home that leads to everything in the package but that folder. Where workers are
started elsewhere, or with another Python, the zip is what they have, and stays.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pyspark

from ottla.spark.java import cache_folders

_LEFT_OUT = "python"


def home_without_zip(master: str, conf: Mapping[str, str], environment: Mapping[str, str]) -> Path | None:
    """Such a home, made once and kept in the user's cache; None where Spark's own is to be used."""
    own_python = _is_this_python(environment.get("PYSPARK_PYTHON", sys.executable))
    if not master.startswith("local") or master.startswith("local-cluster") or not own_python:
        return None
    if "SPARK_HOME" in environment or "spark.pyspark.python" in conf:
        return None
    package = Path(pyspark.__file__).parent
    if not (package / _LEFT_OUT / "lib" / "pyspark.zip").is_file():
        return None
    known = f"{package} {pyspark.__version__}"
    for folder in cache_folders(environment):
        home = folder / f"spark-home-{sha256(known.encode()).hexdigest()[:12]}"
        try:
            if not (home / "jars").is_dir() or home.stat().st_uid != os.getuid():
                _make(home, package)
        except OSError:
            continue  # a folder that cannot be written to: the next one will do
        return home
    return None


def _is_this_python(executable: str) -> bool:
    """By any of its names: an environment's `python`, `python3` and `python3.11` are one, a base's is another."""
    this, other = Path(sys.executable), Path(executable)
    return this == other or (this.parent == other.parent and this.resolve() == other.resolve())


def _make(home: Path, package: Path) -> None:
    """Built beside its place and moved there whole, because two programs may start at once."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".spark-", dir=home.parent) as work:
        made = Path(work, "home")
        made.mkdir()
        for entry in package.iterdir():
            if entry.name != _LEFT_OUT:
                (made / entry.name).symlink_to(entry)
        try:
            made.rename(home)
        except OSError:
            if not (home / "jars").is_dir():  # else somebody was quicker
                raise
