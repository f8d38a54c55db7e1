"""`-daemon`: the same command again, in the background, its output in a file."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ottla.cli.common.output import CommandError, note

LOG_DIR_VARIABLE = "LOG_DIR"
"""As Kafka's scripts have it: where the output goes, ./logs unless it is set."""
READY_SECONDS_MAX = 60.0
LINES_SHOWN_MAX = 20

_PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"


def start_in_background(
    command: str, arguments: Sequence[str], *, log_name: str, is_ready: Callable[[str], bool], stop_with: str
) -> int:
    """Start `ottla COMMAND arguments`; returns when it serves. `is_ready` looks at what it has said so far.

    Kafka's scripts return at once, and what goes wrong is found in the file later. Here it is told.
    """
    path = Path(os.environ.get(LOG_DIR_VARIABLE) or "logs", log_name).absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_size if path.exists() else 0
    with path.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, command, *_without_daemon(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # the terminal may be closed
        )
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready(_since(path, before)):
        code = process.poll()
        if code is not None:
            said = "\n".join(f"  {line}" for line in _since(path, before).splitlines()[-LINES_SHOWN_MAX:])
            raise CommandError(f"it ended with exit code {code}; {path} ends:\n{said}")
        if time.monotonic() > deadline:
            note(f"process {process.pid} does not serve yet after {READY_SECONDS_MAX:g} s; look into {path}")
            break
        time.sleep(0.05)
    note(f"process {process.pid} runs in the background; its log is {path}, and {stop_with} stops it")
    process.returncode = 0  # it is left to itself: no warning that nobody waits for it
    return 0


def _without_daemon(arguments: Sequence[str]) -> list[str]:
    return [argument for argument in arguments if argument not in ("-daemon", "--daemon")]


def _since(path: Path, size: int) -> str:
    with path.open("rb") as file:
        file.seek(size)
        return file.read().decode(errors="replace")
