"""Real systems for the connectors: a PostgreSQL server, a server with the S3 API; and the contexts that a run gives."""

import importlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import fs
from tests.pipelines.postgres import postgres_server

from ottla.pipelines.connectors.base import Batch, SourceContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A server of its own for the run."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def s3_access() -> Iterator[dict[str, Any]]:
    """A server with the S3 API, and what a connector needs to reach it."""
    servers: Any = importlib.import_module("moto.server")
    server = servers.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {"endpoint": f"http://{host}:{port}", "access_key": "ann", "secret_key": "geheim"}
    server.stop()


@pytest.fixture
def access(s3_access: dict[str, Any]) -> dict[str, Any]:
    return dict(s3_access)


@pytest.fixture
def make_bucket(s3_access: dict[str, Any]) -> Callable[[str], str]:
    def make(name: str) -> str:
        _, _, place = s3_access["endpoint"].partition("://")
        keys = {key: s3_access[key] for key in ("access_key", "secret_key")}
        maker = fs.S3FileSystem(
            endpoint_override=place, scheme="http", region="us-east-1", allow_bucket_creation=True, **keys
        )
        maker.create_dir(name)
        return name

    return make


@pytest.fixture
def bucket(make_bucket: Callable[[str], str]) -> str:
    return make_bucket(f"bucket-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def source_context(spark: "SparkSession", tmp_path: Path) -> Callable[..., SourceContext]:
    def build(**changes: Any) -> SourceContext:
        state = tmp_path / "state"
        state.mkdir(exist_ok=True)
        given: dict[str, Any] = {
            "spark": spark,
            "pipeline": "p",
            "name": "in",
            "bootstrap": "",
            "base_dir": tmp_path,
            "state_dir": state,
        }
        return SourceContext(**(given | changes))

    return build


@pytest.fixture
def batch(spark: "SparkSession", tmp_path: Path, unique: Callable[[str], str]) -> Callable[..., Batch]:
    query = unique("query")

    def build(number: int = 0, **changes: Any) -> Batch:
        given: dict[str, Any] = {
            "spark": spark,
            "pipeline": "p",
            "query": query,
            "id": number,
            "sink": "out",
            "base_dir": tmp_path,
            "state_dir": tmp_path,
        }
        return Batch(**(given | changes))

    return build


@pytest.fixture
def drain(tmp_path: Path, unique: Callable[[str], str]) -> "Callable[..., list[Any]]":
    """Run a stream over what is there now, from where the last call with this `checkpoint` ended: its new rows."""

    def run(frame: "DataFrame", checkpoint: str = "checkpoint", batches: list[int] | None = None) -> list[Any]:
        rows: list[Any] = []

        def keep(part: "DataFrame", number: int) -> None:
            found = part.collect()
            rows.extend(found)
            if batches is not None:
                batches.append(len(found))

        query = (
            frame.writeStream.foreachBatch(keep)
            .option("checkpointLocation", str(tmp_path / checkpoint))
            .trigger(availableNow=True)
            .queryName(unique("drain").replace("-", "_"))
            .start()
        )
        query.awaitTermination()
        return rows

    return run
