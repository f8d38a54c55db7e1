"""The process and the machine it runs on, as Linux tells it. Elsewhere nothing is told."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from ottla.telemetry import catalogue
from ottla.telemetry.declared import host, network
from ottla.telemetry.metric import Metric, Row
from ottla.telemetry.registry import Telemetry

PROC = Path("/proc")
_PAGE_BYTES = resource.getpagesize()
_RESIDENT_PAGES = 1  # its place in /proc/self/statm
_START_TICKS = 19  # its place in /proc/self/stat, behind the name
_TICKS = os.sysconf("SC_CLK_TCK")
_SECTOR_BYTES = 512
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_MEMORY: dict[str, Metric] = {
    "MemTotal": host.MEMORY,
    "MemAvailable": host.MEMORY_AVAILABLE,
    "Cached": host.PAGE_CACHE,
    "Dirty": host.DIRTY,
}


def show(telemetry: Telemetry, directories: Callable[[], list[str]], proc: Path = PROC) -> None:
    telemetry.observe_one(catalogue.PROCESS_CPU, lambda: sum(os.times()[:2]), anywhere=True)
    telemetry.observe(catalogue.PROCESS_START, lambda: _started(proc), anywhere=True)
    telemetry.observe_one(catalogue.PROCESS_MEMORY, lambda: _resident_bytes(proc), anywhere=True)
    telemetry.observe_one(catalogue.PROCESS_OPEN_FDS, lambda: len(os.listdir(proc / "self/fd")), anywhere=True)
    telemetry.observe_one(
        catalogue.PROCESS_MAX_FDS, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0], anywhere=True
    )
    telemetry.observe_together((network.DISK_READ, network.DISK_WRITTEN), lambda: _own_io(proc), anywhere=True)
    telemetry.observe(host.CPU, lambda: _processors(proc), anywhere=True)
    telemetry.observe_together(tuple(_MEMORY.values()), lambda: _memory(proc), anywhere=True)
    telemetry.observe(host.LOAD, lambda: _numbers(proc / "loadavg"), anywhere=True)
    telemetry.observe(host.FILES, lambda: _numbers(proc / "sys/fs/file-nr"), anywhere=True)
    telemetry.observe_together((host.DISK_READ, host.DISK_WRITTEN, host.DISK_BUSY), lambda: _disks(proc), anywhere=True)
    telemetry.observe_together((host.NETWORK_IN, host.NETWORK_OUT), lambda: _interfaces(proc), anywhere=True)
    telemetry.observe_together((host.DIRECTORY_FREE, host.DIRECTORY_SIZE), lambda: _space(directories()), anywhere=True)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def _resident_bytes(proc: Path) -> int:
    found = _lines(proc / "self/statm")
    return int(found[0].split()[_RESIDENT_PAGES]) * _PAGE_BYTES if found else 0


def _started(proc: Path) -> Iterator[tuple[tuple[()], float]]:
    """In /proc it is told since the machine's start."""
    found = _lines(proc / "self/stat")
    boot = next((int(line.split()[1]) for line in _lines(proc / "stat") if line.startswith("btime ")), None)
    if found and boot is not None:
        yield (), boot + int(found[0].rpartition(")")[2].split()[_START_TICKS]) / _TICKS


def _own_io(proc: Path) -> Iterator[Row]:
    found = dict(line.split(": ") for line in _lines(proc / "self/io"))
    if "read_bytes" in found:
        yield (), (int(found["read_bytes"]), int(found["write_bytes"]))


def _processors(proc: Path) -> Iterator[tuple[tuple[str], float]]:
    for line in _lines(proc / "stat")[:1]:
        for mode, ticks in zip(_MODES, line.split()[1:], strict=False):
            yield (mode,), int(ticks) / _TICKS


def _memory(proc: Path) -> Iterator[Row]:
    found = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in _lines(proc / "meminfo"))}
    if found.keys() >= _MEMORY.keys():
        yield (), tuple(int(found[name]) * 1024 for name in _MEMORY)


def _numbers(path: Path) -> Iterator[tuple[tuple[()], float]]:
    """The first number of the first line."""
    for line in _lines(path)[:1]:
        first = line.split()[0]
        yield (), int(first) if first.isdigit() else float(first)


def _disks(proc: Path) -> Iterator[Row]:
    """Whole disks that were ever used: what partitions do is theirs, too."""
    known: list[str] = []
    for line in _lines(proc / "diskstats"):
        _, _, device, *figures = line.split()
        is_part = any(device.startswith(disk) and device != disk for disk in known)
        if is_part or device.startswith(("loop", "ram")) or figures[2] == figures[6] == "0":
            continue
        known.append(device)
        yield (device,), (int(figures[2]) * _SECTOR_BYTES, int(figures[6]) * _SECTOR_BYTES, int(figures[9]) / 1000)


def _interfaces(proc: Path) -> Iterator[Row]:
    for line in _lines(proc / "net/dev")[2:]:
        device, _, rest = line.partition(":")
        figures = rest.split()
        yield (device.strip(),), (int(figures[0]), int(figures[8]))


def _space(directories: list[str]) -> Iterator[Row]:
    for directory in directories:
        try:
            found = os.statvfs(directory)
        except OSError:
            continue
        yield (directory,), (found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
