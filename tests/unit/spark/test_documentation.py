"""The page about the data source names everything that can be set."""

from pathlib import Path

import pytest

from ottla.client.security import SECURITY_SETTINGS
from ottla.client.settings import CLIENT_SETTINGS, CONSUMER_SETTINGS
from ottla.spark.reading.options import READ_OPTIONS

PAGE = (Path(__file__).parents[3] / "docs/spark.md").read_text()
_SYNONYMS = {
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.method",
}
"""Java's and librdkafka's other ways to say what the page says once."""


@pytest.mark.parametrize("name", READ_OPTIONS)
def test_every_option_of_a_read_is_explained(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", sorted((CLIENT_SETTINGS | CONSUMER_SETTINGS | SECURITY_SETTINGS) - _SYNONYMS))
def test_every_setting_of_the_client_is_explained(name: str) -> None:
    assert f"`{name}" in PAGE
