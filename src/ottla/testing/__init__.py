"""A real broker for a test: a context manager, and a pytest plugin built on it (docs/testing-kit.md)."""

from ottla.testing.running import BrokerDidNotStart, RunningBroker, broker

__all__ = ["BrokerDidNotStart", "RunningBroker", "broker"]
