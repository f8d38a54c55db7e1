"""A real broker, or a cluster, for tests: context managers and a pytest plugin (docs/testing-kit.md)."""

from ottla.testing.running import BrokerDidNotStart, RunningBroker, broker

__all__ = ["BrokerDidNotStart", "RunningBroker", "broker"]
