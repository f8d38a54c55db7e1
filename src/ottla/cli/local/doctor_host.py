"""What `ottla doctor --host` looks at: settings of the kernel, of disks and of limits that a broker's speed depends on.

A broker lives off the page cache: it writes to memory, the kernel to disk, and readers that keep up read from memory.
So memory must not be swapped out, dirty pages may gather, and nothing is written to disk for being read.
"""

import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from ottla.cli.local.doctor_checks import Finding, State, fail, ok, warn

SWAPPINESS_MAX = 10
DIRTY_BACKGROUND_MAX = 10
DIRTY_MIN = 20
OPEN_FILES_WANTED = 100_000
GOOD_FILE_SYSTEMS = frozenset({"ext4", "xfs"})
REMOTE_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"})
PASSING_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs"})
MIB = 1 << 20


class Wanted(NamedTuple):
    """A number of the kernel, and what it should be at least."""

    name: str
    least: int
    why: str
    field: int = 0
    """Which of several numbers."""


NETWORK = (
    Wanted("net.core.wmem_default", 128 * 1024, "a socket's send buffer unless a broker asks for another"),
    Wanted("net.core.rmem_default", 128 * 1024, "a socket's receive buffer unless a broker asks for another"),
    Wanted("net.core.wmem_max", 2 * MIB, "what socket.send.buffer.bytes may be"),
    Wanted("net.core.rmem_max", 2 * MIB, "what socket.receive.buffer.bytes may be"),
    Wanted("net.ipv4.tcp_wmem", 2 * MIB, "how far TCP may let a send buffer grow, as long ways with delay need", 2),
    Wanted("net.ipv4.tcp_rmem", 2 * MIB, "how far TCP may let a receive buffer grow, as long ways with delay need", 2),
    Wanted("net.ipv4.tcp_window_scaling", 1, "without it no connection has more than 64 KiB under way"),
    Wanted("net.ipv4.tcp_max_syn_backlog", 1024, "how many clients may connect at the same moment"),
    Wanted("net.core.somaxconn", 1024, "how many clients may wait to be accepted"),
    Wanted("net.core.netdev_max_backlog", 1000, "how many packets may wait for the kernel"),
)


def check_host(data: Path, root: Path = Path("/")) -> Iterator[Finding]:
    """`root` is where /proc and /sys are: another one for tests."""
    yield check_swapping(root)
    yield from check_dirty_pages(root)
    yield check_huge_pages(root)
    yield from check_mount(data, root)
    yield from check_files(root)
    yield from check_network(root)


def read_sysctl(root: Path, name: str) -> str | None:
    """None where this kernel, or this container, does not show it."""
    try:
        return (root / "proc/sys" / name.replace(".", "/")).read_text().strip()
    except OSError:
        return None


def _number(root: Path, name: str, field: int = 0) -> int | None:
    text = read_sysctl(root, name)
    try:
        return int(text.split()[field]) if text else None
    except (ValueError, IndexError):
        return None


def _hidden(check: str, name: str) -> Finding:
    return Finding(check=check, state=State.SKIPPED, found=f"{name} cannot be read here; look at it on the host itself")


def _set(name: str, value: int | str) -> str:
    return f"`sysctl -w {name}={value}`, and a line `{name} = {value}` in /etc/sysctl.d/ for after a restart"


# ---- memory


def check_swapping(root: Path) -> Finding:
    check, name = "swapping", "vm.swappiness"
    value = _number(root, name)
    if value is None:
        return _hidden(check, name)
    swap = _meminfo(root).get("SwapTotal", 0)
    found = f"{name} is {value}" + ("" if swap else ", and there is no swap space")
    if not swap or value <= SWAPPINESS_MAX:
        return ok(check, found)
    return warn(check, f"{found}: the kernel may put a broker's memory on disk to keep more of files", _set(name, 1))


def _meminfo(root: Path) -> dict[str, int]:
    """In KiB."""
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":")[::2] for line in lines)
    return {name: int(rest.split()[0]) for name, rest in pairs if rest.split()}


def check_dirty_pages(root: Path) -> Iterator[Finding]:
    yield _ratio(
        root,
        "vm.dirty_background_ratio",
        lambda value: value <= DIRTY_BACKGROUND_MAX,
        5,
        "writing to disk begins late, and then comes in waves",
    )
    yield _ratio(
        root,
        "vm.dirty_ratio",
        lambda value: value >= DIRTY_MIN,
        60,
        "whoever writes has to wait for the disk as soon as so much is unwritten",
    )


def _ratio(root: Path, name: str, good: Callable[[int], bool], better: int, why: str) -> Finding:
    check = "dirty pages"
    value = _number(root, name)
    if value is None:
        return _hidden(check, name)
    if value == 0:
        other = name.replace("_ratio", "_bytes")
        return ok(check, f"{other} is {_number(root, other) or 0:,} and takes the place of {name}")
    found = f"{name} is {value}{_dirty_now(root) if name == 'vm.dirty_ratio' else ''}"
    return ok(check, found) if good(value) else warn(check, f"{found}: {why}", _set(name, better))


def _dirty_now(root: Path) -> str:
    found = _meminfo(root)
    if "Dirty" not in found:
        return ""
    return (
        f" ({found['Dirty'] / 1024:,.0f} MiB are dirty now, {found.get('Writeback', 0) / 1024:,.0f} MiB on their way)"
    )


def check_huge_pages(root: Path) -> Finding:
    check = "huge pages"
    path = root / "sys/kernel/mm/transparent_hugepage/enabled"
    try:
        text = path.read_text()
    except OSError:
        return _hidden(check, "transparent_hugepage")
    chosen = text.partition("[")[2].partition("]")[0]
    found = f"transparent huge pages: {chosen}"
    if chosen != "always":
        return ok(check, found)
    mend = "`echo madvise > /sys/kernel/mm/transparent_hugepage/enabled`, and `transparent_hugepage=madvise` at boot"
    return warn(check, f"{found}: the kernel stops a process to put pages together, which shows as slow requests", mend)


# ---- disks


class Mount(NamedTuple):
    point: str
    kind: str
    options: frozenset[str]


def mount_of(folder: Path, root: Path) -> Mount | None:
    """The file system that a folder is on, or will be."""
    try:
        lines = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    target = str(folder.resolve())
    best: Mount | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 6 or not kinds:
            continue
        point = fields[4].encode().decode("unicode_escape")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) >= len(best.point)):
            best = Mount(point, kinds[0], frozenset(fields[5].split(",")))
    return best


def check_mount(data: Path, root: Path) -> Iterator[Finding]:
    mount = mount_of(data, root)
    if mount is None:
        yield _hidden("file system", "/proc/self/mountinfo")
        return
    found = f"{data} is on {mount.kind} ({mount.point})"
    if mount.kind in REMOTE_FILE_SYSTEMS:
        mend = "keep logs on a disk of this machine: replication is between brokers"
        yield fail("file system", f"{found}: over a network, where locks and flushes are not what they seem", mend)
    elif mount.kind in PASSING_FILE_SYSTEMS:
        yield warn("file system", f"{found}: it is gone after a restart", "keep logs on a disk, with XFS or ext4")
    elif mount.kind in GOOD_FILE_SYSTEMS:
        yield ok("file system", found)
    else:
        yield warn("file system", f"{found}: Kafka's users have XFS or ext4", "put log.dirs on XFS, best, or ext4")
    if "noatime" in mount.options:
        yield ok("access times", f"{mount.point} is mounted noatime")
    elif "relatime" in mount.options:
        yield ok("access times", f"{mount.point} is mounted relatime: once a day for each file; noatime is never")
    else:
        mend = f"`mount -o remount,noatime {mount.point}`, and noatime in /etc/fstab"
        yield warn("access times", f"{mount.point} keeps access times: every read of a segment becomes a write", mend)


# ---- limits


def check_files(root: Path) -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= OPEN_FILES_WANTED:
        yield ok(
            "file descriptors", "no limit for a process" if hard == resource.RLIM_INFINITY else f"at most {hard:,}"
        )
    else:
        mend = f"LimitNOFILE={OPEN_FILES_WANTED} in the broker's unit, or `nofile` in /etc/security/limits.conf"
        found = f"at most {hard:,} for a process: segments take two or three, connections one each"
        yield warn("file descriptors", found, mend)
    everybody = _number(root, "fs.file-max")
    if everybody is not None and everybody < OPEN_FILES_WANTED:
        yield warn(
            "file descriptors", f"fs.file-max is {everybody:,}, for all processes", _set("fs.file-max", 1_000_000)
        )


def check_network(root: Path) -> Iterator[Finding]:
    """One finding for each that is too low, and one for all that are well."""
    good = []
    for wanted in NETWORK:
        value = _number(root, wanted.name, wanted.field)
        if value is None:
            yield _hidden("network", wanted.name)
        elif value >= wanted.least:
            good.append(wanted.name.rpartition(".")[2])
        else:
            all_ = (read_sysctl(root, wanted.name) or "").split()
            all_[wanted.field] = str(wanted.least)
            better = " ".join(all_)
            shown = f'"{better}"' if len(all_) > 1 else better
            yield warn("network", f"{wanted.name} is {value:,}: {wanted.why}", _set(wanted.name, shown))
    if good:
        yield ok("network", f"large enough: {', '.join(good)}")
