"""The connectors that come with Ottla. A new one is a module and a line here; other packages use entry points."""

from ottla.pipelines.connectors.base import Sink, Source
from ottla.pipelines.registry import Registry

_HERE = "ottla.pipelines.connectors"

SOURCES: Registry[Source] = Registry(
    "source",
    {
        "topic": f"{_HERE}.topic:TopicSource",
        "files": f"{_HERE}.files.connector:FilesSource",
        "s3": f"{_HERE}.s3.connector:S3Source",
        "postgres": f"{_HERE}.postgres.connector:PostgresSource",
        "sqlite": f"{_HERE}.sqlite.connector:SqliteSource",
        "generate": f"{_HERE}.generated.connector:GenerateSource",
    },
    "ottla.sources",
)

SINKS: Registry[Sink] = Registry(
    "sink",
    {
        "topic": f"{_HERE}.topic:TopicSink",
        "files": f"{_HERE}.files.connector:FilesSink",
        "s3": f"{_HERE}.s3.connector:S3Sink",
        "postgres": f"{_HERE}.postgres.connector:PostgresSink",
        "sqlite": f"{_HERE}.sqlite.connector:SqliteSink",
        "console": f"{_HERE}.console:ConsoleSink",
    },
    "ottla.sinks",
)
