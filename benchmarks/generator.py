"""The load generator: built from benchmarks/loadgen with the system's C compiler, run once per measurement."""

import importlib.util
import json
import subprocess
from pathlib import Path

from compat.peer.kafka import PEER, require

SOURCES = Path(__file__).with_name("loadgen")
PROGRAM = PEER / "loadgen"
RUN_S_MAX = 300


class GeneratorError(Exception):
    """The load generator could not be built, or a run of it failed."""


def build() -> Path:
    """Compile against the librdkafka of the confluent-kafka wheel, unless the program is up to date."""
    sources = sorted(SOURCES.glob("*.c"))
    newest = max(path.stat().st_mtime for path in SOURCES.iterdir())
    library = _librdkafka()
    if PROGRAM.exists() and PROGRAM.stat().st_mtime > max(newest, library.stat().st_mtime):
        return PROGRAM
    PEER.mkdir(exist_ok=True)
    compiler = require("cc", why="to build the load generator (Debian: apt install gcc libc6-dev)")
    flags = ["-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    link = [str(library), "-lpthread", f"-Wl,-rpath,{library.parent}"]
    command = [compiler, *flags, "-o", str(PROGRAM), *map(str, sources), *link]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GeneratorError(f"the load generator does not compile:\n{done.stderr}")
    return PROGRAM


def _librdkafka() -> Path:
    found = importlib.util.find_spec("confluent_kafka")
    if found is None or found.origin is None:
        raise GeneratorError("confluent-kafka is not installed; run make setup")
    bundled = Path(found.origin).parents[1] / "confluent_kafka.libs"
    libraries = sorted(bundled.glob("librdkafka-*.so*"))
    if not libraries:
        raise GeneratorError(f"no librdkafka in {bundled}: this confluent-kafka is not the binary wheel")
    return libraries[0]


def run(mode: str, **arguments: object) -> dict[str, float]:
    """One run of the generator; properties of librdkafka are given as P__acks=1 or C__fetch__min__bytes=1."""
    words = [f"{name.replace('__', '.')}={value}" for name, value in arguments.items()]
    done = subprocess.run([PROGRAM, mode, *words], capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    if done.returncode != 0:
        raise GeneratorError(f"loadgen {mode} {' '.join(words)}:\n{done.stderr}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
