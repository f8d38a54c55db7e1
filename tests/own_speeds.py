"""What the machine does by itself: files copied on its disk, objects put to and got from its S3 server."""

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ottla.pipelines.backup import store
from ottla.pipelines.backup.planning import OBJECT_BYTES
from ottla.pipelines.backup.store import Place

COPY_BYTES = 8 << 20
THREADS = 2


class Speed(NamedTuple):
    what: str
    bytes: int
    seconds: float

    def __str__(self) -> str:
        megabytes = self.bytes / 1e6
        return f"{self.what}: {megabytes:,.0f} MB in {self.seconds:.1f} s, {megabytes / self.seconds:.0f} MB/s"


def timed(what: str, size: int, work: Callable[[], object]) -> Speed:
    began = time.perf_counter()
    work()
    return Speed(what, size, time.perf_counter() - began)


def disk_speed(files: Sequence[Path], folder: Path, bytes_max: int | None = None) -> Speed:
    """Of copying files to a new folder, each with fsync; `bytes_max` of them are enough."""
    chosen, size = [], 0
    for path in files:
        if bytes_max is not None and size >= bytes_max:
            break
        chosen.append(path)
        size += path.stat().st_size
    folder.mkdir()
    try:
        return timed("copy on the disk, with fsync", size, lambda: _copy(chosen, folder))
    finally:
        shutil.rmtree(folder)


def _copy(files: Sequence[Path], folder: Path) -> None:
    for number, path in enumerate(files):
        with path.open("rb") as source, (folder / str(number)).open("wb") as target:
            shutil.copyfileobj(source, target, COPY_BYTES)
            target.flush()
            os.fsync(target.fileno())


def store_speeds(place: Place, bytes_max: int) -> list[Speed]:
    """Of objects as a backup has them, for a client that does nothing else."""
    content = random.Random(2).randbytes(OBJECT_BYTES)
    names = [str(number) for number in range(max(1, bytes_max // OBJECT_BYTES))]
    size = len(names) * OBJECT_BYTES

    def got(name: str) -> int:
        return len(store.read(place, name))

    with ThreadPoolExecutor(THREADS) as pool:
        put = timed(
            "put to the S3 server", size, lambda: [*pool.map(lambda name: store.write(place, name, content), names)]
        )
        get = timed("get from the S3 server", size, lambda: [*pool.map(got, names)])
    for name in names:
        store.delete(place, name)
    return [put, get]
