"""The settings of the monitor's own connections: a monitor that waits as long as an application sees nothing."""

from collections.abc import Mapping

from ottla.client.settings import ClientSettings, client_settings

CLIENT_ID = "ottla-monitor"
PATIENCE: Mapping[str, str] = {
    "request.timeout.ms": "5000",
    "default.api.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "3000",
}


def monitor_client(bootstrap: str, settings: Mapping[str, str]) -> ClientSettings:
    """With `settings` of a --command-config file; raises InvalidSetting."""
    return client_settings({"client.id": CLIENT_ID, **PATIENCE, **settings, "bootstrap.servers": bootstrap})
