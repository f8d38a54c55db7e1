"""Where Spark looks for `format("ottla")`: a module of this name with a `DefaultSource`."""

from ottla.spark.source import OttlaDataSource as DefaultSource

__all__ = ["DefaultSource"]
