"""Ottla: a streaming platform for Python. A log that speaks Kafka's wire protocol, without a JVM."""

__version__ = "0.1.0"
