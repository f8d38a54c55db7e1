"""Sinks say which moment of their work they have reached, so that a test can end the work right there."""

from collections.abc import Callable

Reached = Callable[[str], None]


def unwatched(_: str) -> None:
    """Nobody listens: how sinks work outside of tests."""
