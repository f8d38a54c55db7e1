"""A store for one broker on its own: documents in a SQLite file in its first data directory.

Every commit is forced to disk before it counts (write-ahead log, synchronous=FULL). SQLite works in a thread of its
own, one commit at a time, so the event loop never waits for the disk; the image changes on the loop.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ottla.cluster.documents import CLUSTER_ID_PATH, apply_documents, change_of_documents, cluster_id_document
from ottla.cluster.image import BrokerImage, ClusterImage, ImageChange
from ottla.cluster.known import KnownDocuments
from ottla.cluster.store import (
    Document,
    Session,
    SessionObserver,
    StoreError,
    Subscriber,
    Write,
)
from ottla.config.properties import parse_properties
from ottla.model.errors import OttlaError
from ottla.model.names import format_topic_id, new_topic_id

FILE_NAME = "metadata.sqlite"
IMPORTED_SUFFIX = ".imported"
"""What the file's name ends with when its content has been brought to ZooKeeper."""
META_PROPERTIES = "meta.properties"
NEVER_MS = 2**63 - 1
_TABLE = (
    "CREATE TABLE IF NOT EXISTS documents"
    " (path TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID"
)


class EmbeddedStore:
    """MetadataStore over SQLite. Open it with `EmbeddedStore.open`, close it when done."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self._turn = asyncio.Lock()
        self._commits: set[asyncio.Task[None]] = set()
        self._subscribers: list[Subscriber] = []
        self._known = KnownDocuments()
        self._image = ClusterImage()
        self._epoch = 0
        self._load()

    @classmethod
    def open(cls, directory: str | Path, *, cluster_id: str | None = None) -> "EmbeddedStore":
        """Open the store in this directory, creating directory, file and cluster id if they are missing.

        `cluster_id` is the one to create, instead of a new one.
        """
        path = Path(directory) / FILE_NAME
        if not path.exists():
            _check_unused(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _own(connection)
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute(_TABLE)
            connection.execute(
                "INSERT OR IGNORE INTO documents VALUES (?, ?, 0)",
                (CLUSTER_ID_PATH, cluster_id_document(cluster_id or format_topic_id(new_topic_id()))),
            )
            connection.execute("COMMIT")
            _sync_directory(path.parent)
            return cls(connection)
        except (sqlite3.Error, msgspec.MsgspecError) as error:
            connection.close()
            raise _unusable(path, error) from error

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, callback: Subscriber) -> Callable[[], None]:
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def read(self, path: str) -> Document | None:
        return self._known.read(path)

    def version(self, path: str) -> int:
        return self._known.version(path)

    @property
    def session(self) -> Session:
        """A file in the broker's own directory is always there."""
        return Session.CONNECTED

    @property
    def session_timeout_ms(self) -> int:
        return NEVER_MS

    def on_session(self, observer: SessionObserver) -> None:
        """It never changes."""

    async def commit(self, writes: Sequence[Write], *, as_controller: bool = False) -> None:
        # What was begun is carried to its end even if the caller goes away: file and image must not part.
        task = asyncio.ensure_future(self._commit(tuple(writes)))
        self._commits.add(task)
        task.add_done_callback(self._commits.discard)
        await asyncio.shield(task)

    async def connected(self, within_s: float) -> None:
        """It is here."""

    async def refresh(self) -> None:
        """Nobody else writes here."""

    async def register_broker(self, broker: BrokerImage) -> None:
        """Brokers are known while they run, so this one is kept in memory only. It is its own controller."""
        self._epoch += 1
        brokers = {**self._image.brokers, broker.id: replace(broker, epoch=self._epoch)}
        self._publish(ImageChange(self._image, replace(self._image, brokers=brokers, controller_id=broker.id)))

    async def close(self) -> None:
        """Finish the commit under way, if any, and close the file."""
        self._writer.shutdown(wait=True)
        self._connection.close()

    def _load(self) -> None:
        self._image = apply_documents(self._image, self._read_all())

    def _read_all(self) -> Iterator[tuple[str, bytes | None]]:
        for path, data, version in self._connection.execute("SELECT path, data, version FROM documents"):
            self._known.remember(path, data, version)
            yield path, data

    async def _commit(self, writes: tuple[Write, ...]) -> None:
        async with self._turn:
            self._known.check(writes)
            try:
                await asyncio.get_running_loop().run_in_executor(self._writer, self._write, writes)
            except sqlite3.Error as error:
                raise StoreError(f"the metadata could not be written: {error}") from error
            for path, data, expected in writes:
                self._known.remember(path, data, expected + 1)
            self._publish(change_of_documents(self._image, ((path, data) for path, data, _ in writes)))

    def _write(self, writes: tuple[Write, ...]) -> None:
        """In the writer's thread: all of it or nothing, on disk when it returns."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany(
                "DELETE FROM documents WHERE path = ?", [(path,) for path, data, _ in writes if data is None]
            )
            connection.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)",
                [(path, data, expected + 1) for path, data, expected in writes if data is not None],
            )
            connection.execute("COMMIT")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _publish(self, change: ImageChange) -> None:
        self._image = change.new
        for callback in tuple(self._subscribers):
            callback(change)


def _check_unused(path: Path) -> None:
    """A directory with data and without its metadata must not get new metadata: its topics would be strangers."""
    imported, properties = path.with_name(path.name + IMPORTED_SUFFIX), path.with_name(META_PROPERTIES)
    if imported.exists():
        raise OttlaError(f"the metadata in {path} was moved to ZooKeeper: give zookeeper.connect, as when it was moved")
    if properties.exists():
        cluster_id = parse_properties(properties.read_text(encoding="utf-8")).get("cluster.id")
        if cluster_id:
            raise OttlaError(
                f"{path.parent} belongs to cluster {cluster_id}, but its metadata, {path}, is not there. If it is "
                "kept in ZooKeeper give zookeeper.connect; if it was lost it has to come back from a copy"
            )


def read_documents(path: Path) -> dict[str, bytes]:
    """Every document in the file of a broker that does not run, by its path."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        _own(connection)
        return dict(connection.execute("SELECT path, data FROM documents ORDER BY path"))
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    finally:
        connection.close()


def write_documents(path: Path, documents: Mapping[str, bytes]) -> None:
    """A new file with these documents, for a broker that will start with it: all of them, or no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    beside.unlink(missing_ok=True)
    connection = sqlite3.connect(beside, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute(_TABLE)
        connection.executemany("INSERT INTO documents VALUES (?, ?, 0)", sorted(documents.items()))
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
    finally:
        connection.close()
    beside.rename(path)
    _sync_directory(path.parent)


def _own(connection: sqlite3.Connection) -> None:
    # The file belongs to one process: a second broker on the same directory must fail, not share.
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _unusable(path: Path, error: Exception) -> OttlaError:
    hint = "another broker is using it" if "locked" in str(error) else "it cannot be read"
    return OttlaError(f"metadata in {path}: {hint} ({error})")


def _sync_directory(directory: Path) -> None:
    """Make the file's name as durable as its content."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
