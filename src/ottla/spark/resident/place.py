"""Where a resident driver is found, and for whom it is.

Commands share a JVM only if they would have started the same one: same user, Ottla, PySpark, Python, Java options,
working directory and environment. All of that is in the name of its socket, so that nothing has to be handed over, and
no credential of one environment is ever used for a command of another.
"""

import importlib.util
import os
import stat
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import ottla
from ottla.spark.java import cache_folders

SWITCH = "OTTLA_RESIDENT"
"""`off`: never use one; `on`: start one if there is none; else one that runs is used."""
PATH_BYTES_MAX = 107
"""Of a socket, as the system has it."""

# What differs from one terminal, or one command, to the next and is nothing to Spark.
_OF_THE_TERMINAL = frozenset(
    {"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "STY", "TERM", "TERM_PROGRAM", "TERM_SESSION_ID", "TMUX"}
    | {"TMUX_PANE", "TTY", "WINDOWID", "XDG_SESSION_ID", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "COLORTERM"}
    # Set by PySpark and by us when a session starts.
    | {SWITCH, "PYSPARK_PYTHON", "SPARK_LOCAL_IP", "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}
    | {"OTTLA_BOOTSTRAP"}  # read by the command alone: it hands Spark an address
)


def key_of(environment: Mapping[str, str], directory: str, code: str) -> str:
    """Commands with the same key may share a JVM."""
    told = sorted((name, value) for name, value in environment.items() if name not in _OF_THE_TERMINAL)
    known = repr((os.getuid(), sys.executable, sys.version, code, directory, told))
    return sha256(known.encode()).hexdigest()[:16]


def code_version() -> str:
    """Ottla as it is installed, or being worked on: a driver must not run on with modules that were changed."""
    package = Path(ottla.__file__).parent
    newest = 0
    for folder, folders, files in os.walk(package):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in files:
            newest = max(newest, os.stat(os.path.join(folder, name)).st_mtime_ns)
    return f"{ottla.__version__} {package} {newest} {_pyspark()}"


def _pyspark() -> str:
    """Which one it is, without importing it: a command that is handed over never does."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        return "none"
    return Path(found.origin).with_name("version.py").read_text(encoding="utf-8")


def this_key() -> str:
    return key_of(os.environ, str(Path.cwd()), code_version())


def folder_of(environment: Mapping[str, str]) -> Path | None:
    """The user's own folder for sockets: nobody else may enter it. None where there can be none."""
    for cache in cache_folders(environment):
        folder = cache / "resident"
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = folder.stat()
        except OSError:
            continue  # a folder that cannot be written to: the next one will do
        private = stat.S_IMODE(found.st_mode) == 0o700 and found.st_uid == os.getuid() and not folder.is_symlink()
        if private and len(os.fsencode(socket_of(folder, key_of({}, "", "")))) <= PATH_BYTES_MAX:
            return folder
    return None


def socket_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.sock"


def command_socket_of(folder: Path, key: str) -> Path:
    """Of the process that has imported what commands need."""
    return folder / f"{key}.command"
