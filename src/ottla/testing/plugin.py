"""Fixtures for pytest: `ottla_broker`, shared by the session, `ottla_fresh_broker`, one for each test, `ottla_cluster`.

pytest loads this at every start, in projects that never use a broker too, so it imports nothing heavy.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

from ottla.testing.running import RunningBroker, SettingValue, broker

if TYPE_CHECKING:
    from ottla.testing.cluster import RunningCluster

MARKER = "ottla"
LOG_LINES_SHOWN_MAX = 200


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(settings, **more): settings of the test's own broker, as a mapping of their names or as keywords "
        "with _ for each dot; for tests that use ottla_fresh_broker",
    )


@pytest.fixture(scope="session")
def ottla_broker_settings() -> Mapping[str, SettingValue]:
    """Settings for the brokers of all fixtures. Override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_settings: Mapping[str, SettingValue]) -> Iterator[RunningBroker]:
    """One broker for the whole session. Tests that share it keep apart by the names of their topics and groups."""
    with broker(ottla_broker_settings) as running:
        yield running


@pytest.fixture
def ottla_fresh_broker(
    request: pytest.FixtureRequest, ottla_broker_settings: Mapping[str, SettingValue]
) -> Iterator[RunningBroker]:
    """An empty broker for this test alone; `@pytest.mark.ottla(...)` gives it settings."""
    with broker({**ottla_broker_settings, **_marked_settings(request.node)}) as running:
        yield running
        lines = running.log_text().splitlines()
        # Shown by pytest only when the test has failed.
        request.node.add_report_section(
            "teardown", "log of ottla_fresh_broker", "\n".join(lines[-LOG_LINES_SHOWN_MAX:])
        )


@pytest.fixture(scope="session")
def ottla_cluster(ottla_broker_settings: Mapping[str, SettingValue]) -> "Iterator[RunningCluster]":
    """Three brokers with a ZooKeeper for the whole session, none of them to be harmed for good."""
    from ottla.testing.cluster import cluster  # noqa: PLC0415 - for the few who want one
    from ottla.testing.zookeeper import shared_zookeeper  # noqa: PLC0415

    with cluster(3, settings=ottla_broker_settings, zookeeper=shared_zookeeper()) as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A marker that no fixture would read is a mistake, and is said to be one rather than ignored."""
    for item in items:
        if item.get_closest_marker(MARKER) and "ottla_fresh_broker" not in getattr(item, "fixturenames", ()):
            raise pytest.UsageError(
                f"{item.nodeid}: @pytest.mark.{MARKER} gives settings to ottla_fresh_broker, which this test does not "
                "use; settings of the shared broker come from the fixture ottla_broker_settings"
            )


def _marked_settings(node: pytest.Item) -> dict[str, SettingValue]:
    settings: dict[str, SettingValue] = {}
    for marker in reversed(list(node.iter_markers(MARKER))):  # the nearest marker has the last word
        for mapping in marker.args:
            settings.update(mapping)
        settings.update({name.replace("_", "."): value for name, value in marker.kwargs.items()})
    return settings
