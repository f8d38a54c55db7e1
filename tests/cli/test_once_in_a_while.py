"""What a library repeats is logged once in a while, and what is new is logged at once."""

import logging

from ottla.cli.local.once_in_a_while import OnceInAWhile


def test_the_same_kind_of_message_passes_once_in_ten_seconds() -> None:
    now = 100.0
    passes = OnceInAWhile(10.0, lambda: now)

    def said(text: str, *values: object) -> bool:
        return bool(passes.filter(logging.LogRecord("kazoo.client", logging.WARNING, "", 1, text, values, None)))

    assert said("Connection dropped: %s", "refused")
    assert not said("Connection dropped: %s", "broken")
    assert said("Session has expired")
    now += 9.9
    assert not said("Connection dropped: %s", "refused")
    now += 0.1
    assert said("Connection dropped: %s", "refused")
    assert not said("Connection dropped: %s", "refused")
