"""Ottla: a streaming platform for Python. A log that speaks Kafka's wire protocol, without a JVM."""

__version__ = "0.1.0"
"""The one place that says it: the package's metadata, `--version` and what brokers are told are read from here."""
