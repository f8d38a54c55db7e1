"""What all tests share."""

import itertools
import os
from collections.abc import Callable

import pytest

_counter = itertools.count(1)


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test of this run uses, so that tests can share a broker."""
    return lambda prefix: f"{prefix}-{os.getpid()}-{next(_counter)}"
