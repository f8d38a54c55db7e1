"""Settings of who may read the metrics, and whether anybody can listen in."""

import dataclasses

from ottla.config.setting import SettingType, setting

SCRAM = "scram"
FILE = "file:"


def _login_problem(text: str | None) -> str | None:
    if not text or text == SCRAM or (text.startswith(FILE) and text.removeprefix(FILE)):
        return None
    return f"{text!r} is neither {SCRAM} (users of the metadata) nor {FILE}PATH (a file with user=password lines)"


@dataclasses.dataclass(frozen=True, kw_only=True)
class MetricsAccessSettings:
    """Login and TLS of `metrics.listener`."""

    metrics_listener_login: str | None = setting(
        None,
        type=SettingType.STRING,
        check=_login_problem,
        doc="Who may read the metrics, by name and password (HTTP Basic): scram, users who can log in by SCRAM; or "
        "file:PATH, a file with lines user=password, read again when it changes. Without it nobody is asked. Ottla's "
        "own setting.",
    )
    metrics_listener_tls: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="Name of a listener with TLS: metrics are served over https with its key store, and if it requires client "
        "certificates (ssl.client.auth) so does https. Without it metrics go out in clear. Ottla's own setting.",
    )
