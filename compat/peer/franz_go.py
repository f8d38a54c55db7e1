"""The tests of franz-go, a Go client, fetched as a Go module and compiled into .peer/."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat.peer.kafka import PEER, PeerError

MODULE = "github.com/twmb/franz-go"
VERSION = "v1.22.2"
PROGRAM = PEER / f"franz-go-{VERSION}.test"


def compiled_tests() -> Path:
    """The program with the tests of its package kgo, made when it is missing."""
    if PROGRAM.exists():
        return PROGRAM
    PEER.mkdir(exist_ok=True)
    source = PEER / "franz-go"
    shutil.rmtree(source, ignore_errors=True)
    told = json.loads(_go(["mod", "download", "-json", f"{MODULE}@{VERSION}"], PEER, GOWORK="off"))
    # Go keeps modules read-only, and a test is compiled from inside its own module.
    shutil.copytree(told["Dir"], source, copy_function=shutil.copyfile)
    for folder in [source, *(path for path in source.rglob("*") if path.is_dir())]:
        folder.chmod(0o755)
    _go(["test", "-c", "-o", str(PROGRAM), "./pkg/kgo"], source, GOWORK="off")
    return PROGRAM


def _go(arguments: Sequence[str], directory: Path, **env: str) -> str:
    command = ["go", *arguments]
    done = subprocess.run(
        command, cwd=directory, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise PeerError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
