"""The connectors that come with Ottla. A new one is a module and a line here; other packages use entry points."""

from ottla.pipelines.connectors.base import Sink, Source
from ottla.pipelines.registry import Registry

_HERE = "ottla.pipelines.connectors"

SOURCES: Registry[Source] = Registry(
    "source",
    {
        "topic": f"{_HERE}.topic:TopicSource",
        "files": f"{_HERE}.files:FilesSource",
        "s3": f"{_HERE}.s3:S3Source",
        "postgres": f"{_HERE}.postgres:PostgresSource",
        "sqlite": f"{_HERE}.sqlite:SqliteSource",
        "generate": f"{_HERE}.generate:GenerateSource",
    },
    "ottla.sources",
)

SINKS: Registry[Sink] = Registry(
    "sink",
    {
        "topic": f"{_HERE}.topic:TopicSink",
        "files": f"{_HERE}.files:FilesSink",
        "s3": f"{_HERE}.s3:S3Sink",
        "postgres": f"{_HERE}.postgres:PostgresSink",
        "sqlite": f"{_HERE}.sqlite:SqliteSink",
        "console": f"{_HERE}.console:ConsoleSink",
    },
    "ottla.sinks",
)
