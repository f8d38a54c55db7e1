"""What `ottla doctor` looks at. Each check says what it found and, where something is wrong, how to mend it."""

import importlib.metadata
import os
import re
import resource
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ottla.client.cluster import Address, Cluster, parse_bootstrap
from ottla.config.memory import memory_bytes
from ottla.model.errors import OttlaError

GIB = 1 << 30
DISK_FREE_BYTES_MIN = 1 * GIB
DISK_FREE_BYTES_WANTED = 5 * GIB
MEMORY_BYTES_WANTED = 2 * GIB
OPEN_FILES_MIN = 1024
OPEN_FILES_WANTED = 16_384
CLOCK_DIFFERENCE_SECONDS_MAX = 5.0
PROBE_SECONDS_MAX = 3.0
SELDOM_NEEDED = {"gssapi": "only logins by Kerberos need it"}
"""Extras that are not missed by most."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?(?P<limits>[^;]*)(?:;.*extra == ['\"](?P<extra>\w+)['\"])?")
_LIMIT = re.compile(r"(?P<sign>>=|<)(?P<version>[\d.]+)")


class State(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class Finding:
    check: str
    state: State
    found: str
    mend: str | None = None
    """What to do about it, where something is to be done."""


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, state=State.OK, found=found)


def warn(check: str, found: str, mend: str) -> Finding:
    return Finding(check=check, state=State.WARN, found=found, mend=mend)


def fail(check: str, found: str, mend: str) -> Finding:
    return Finding(check=check, state=State.FAIL, found=found, mend=mend)


# ---- this installation


def check_python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return ok("python", f"Python {version}, {sys.executable}")


def check_packages() -> list[Finding]:
    """The packages that the package's own metadata asks for, by extra."""
    try:
        wanted = importlib.metadata.requires("ottla") or []
    except importlib.metadata.PackageNotFoundError:
        return [fail("packages", "the package ottla is not installed", "run `pip install ottla` or `make setup`")]
    versions = {}
    for requirement in wanted:
        name = parse_requirement(requirement)[0]
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return judge_packages(wanted, versions)


def parse_requirement(text: str) -> tuple[str, str, str | None]:
    """`pyspark<4.4,>=4.3; extra == 'spark'` as name, limits and extra."""
    found = _REQUIREMENT.match(text)
    assert found is not None, text
    return found["name"], found["limits"].strip(), found["extra"]


def within(version: str, limits: str) -> bool:
    """True if a version keeps all of `>=` and `<`; pre-releases count as their release."""
    numbers = _numbers(version)
    for limit in _LIMIT.finditer(limits):
        bound = _numbers(limit["version"])
        width = max(len(numbers), len(bound))
        left, right = _padded(numbers, width), _padded(bound, width)
        if not (left >= right if limit["sign"] == ">=" else left < right):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:4])


def _padded(numbers: tuple[int, ...], width: int) -> tuple[int, ...]:
    return numbers + (0,) * (width - len(numbers))


def judge_packages(wanted: Iterable[str], versions: Mapping[str, str]) -> list[Finding]:
    """One finding for the core, and one for each extra but `java`, which only serves where there is no other."""
    by_extra: dict[str | None, list[tuple[str, str]]] = {}
    for requirement in wanted:
        name, limits, extra = parse_requirement(requirement)
        by_extra.setdefault(extra, []).append((name, limits))
    findings = []
    for extra, packages in by_extra.items():
        if extra == "java":
            continue
        check = f"packages of ottla[{extra}]" if extra else "packages"
        target = f"'ottla[{extra}]'" if extra else "ottla"
        mend = f"run `pip install --upgrade {target}`"
        missing = [name for name, _ in packages if name not in versions]
        outdated = [
            f"{name} is {versions[name]}, wanted {limits}"
            for name, limits in packages
            if name in versions and not within(versions[name], limits)
        ]
        if extra in SELDOM_NEEDED and len(missing) == len(packages):
            found = f"not installed: {SELDOM_NEEDED[extra]}"
            findings.append(Finding(check=check, state=State.SKIPPED, found=found))
        elif extra and len(missing) == len(packages):
            found = "not installed: the broker and its tools work, pipelines and `ottla sql` do not"
            findings.append(warn(check, found, mend))
        elif missing or outdated:
            wrong = [*(f"{name} is missing" for name in missing), *outdated]
            findings.append(fail(check, "; ".join(wrong), mend))
        else:
            shown = ", ".join(f"{name} {versions[name]}" for name, _ in packages)
            findings.append(ok(check, shown))
    return findings


# ---- this machine


def check_memory() -> Finding:
    total = memory_bytes()
    cores = os.cpu_count() or 1
    found = f"{total / GIB:.1f} GiB, {cores} cores"
    if total < MEMORY_BYTES_WANTED:
        return warn("memory", found, "Spark wants about 2 GiB: give it less with --conf spark.driver.memory=512m")
    return ok("memory", found)


def check_open_files() -> Finding:
    """The broker raises its own soft limit, so the hard one counts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return ok("open files", "no limit")
    found = f"at most {hard:,}" + (f" (now {soft:,}; the broker raises it by itself)" if soft < hard else "")
    mend = "raise it: `ulimit -Hn 65536` as root, or LimitNOFILE= in the service's unit"
    if hard < OPEN_FILES_MIN:
        return fail("open files", found, mend)
    if hard < OPEN_FILES_WANTED:
        return warn("open files", found + ": a partition needs about four, a connection one", mend)
    return ok("open files", found)


def check_folder(check: str, folder: Path, option: str) -> Finding:
    """Can be written to, keeps time, has room. `option` says how to choose another."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    mend = f"make it writable, or choose another: {option}"
    if not existing.is_dir():
        return fail(check, f"{existing} is not a folder", mend)
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".ottla-doctor-") as probe:
            probe.write(b"x")
            probe.flush()
            difference = os.fstat(probe.fileno()).st_mtime - time.time()
    except OSError as error:
        return fail(check, f"cannot write to {existing}: {error.strerror}", mend)
    if abs(difference) > CLOCK_DIFFERENCE_SECONDS_MAX:
        return warn(
            check,
            f"{folder} is on a disk whose clock is {difference:+.0f} s away from this machine's",
            "set both clocks by NTP: retention by time reads both",
        )
    free = shutil.disk_usage(existing).free
    found = f"{folder}: writable, {free / GIB:.1f} GiB free"
    if free < DISK_FREE_BYTES_MIN:
        return fail(check, found, f"free some space, or choose another disk: {option}")
    if free < DISK_FREE_BYTES_WANTED:
        return warn(check, found, f"keep an eye on it, or choose another disk: {option}")
    return ok(check, found)


def check_scratch(environment: Mapping[str, str]) -> Finding:
    """Where Spark spills and unpacks native libraries."""
    folder = Path(environment.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir())
    finding = check_folder("Spark's scratch folder", folder, "SPARK_LOCAL_DIRS=DIR")
    if finding.state is State.OK and os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return warn(
            finding.check,
            f"{folder} is mounted noexec, so RocksDB state and some codecs cannot load their libraries",
            "--conf spark.driver.defaultJavaOptions=-Djava.io.tmpdir=DIR with a folder on another disk",
        )
    return finding


def check_clock() -> Finding:
    """This program's own files cannot be from the future."""
    newest = Path(__file__).stat().st_mtime
    now = time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now))
    if now + 86_400 < newest:
        return warn("clock", f"it is {shown} UTC here, before Ottla was installed", "set the clock, best by NTP")
    return ok("clock", f"{shown} UTC")


# ---- brokers


async def check_broker(bootstrap: str, *, asked_for: bool) -> Finding:
    """A broker that was named must answer; where none was named, a free port is as good."""
    check = "broker"
    try:
        addresses = parse_bootstrap(bootstrap)
    except OttlaError as error:
        return fail(check, str(error), "write it as host:port,host:port")
    listening = [address for address in addresses if _listens(address)]
    if not listening:
        if asked_for:
            mend = "start it, or name another with --bootstrap-server"
            return fail(check, f"nobody listens at {bootstrap}", mend)
        return ok(check, f"none at {bootstrap}; the port is free: `ottla up` starts one there")
    try:
        async with Cluster(
            bootstrap,
            client_id="ottla-doctor",
            connect_timeout_s=PROBE_SECONDS_MAX,
            request_timeout_s=PROBE_SECONDS_MAX,
        ) as cluster:
            await cluster.metadata([])
            return ok(check, f"{bootstrap} answers: cluster {cluster.cluster_id}, {_brokers(len(cluster.brokers))}")
    except OttlaError as error:
        return fail(
            check,
            f"something listens at {bootstrap} but does not answer as a broker ({error})",
            "see what it is (`ss -ltnp`); start the broker on another port: `ottla up --port 9192`",
        )


def _brokers(count: int) -> str:
    return "1 broker" if count == 1 else f"{count} brokers"


def _listens(address: Address) -> bool:
    try:
        with socket.create_connection(address, timeout=PROBE_SECONDS_MAX):
            return True
    except OSError:
        return False
