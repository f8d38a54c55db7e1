"""Metrics for those who may read them: https with a listener's certificate, and users by name and password."""

import base64
import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from tests.security.sasl_kit import set_password

from ottla.testing import BrokerDidNotStart, RunningBroker, broker
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until
from ottla.tls.authority import LOCAL_HOSTS

pytestmark = pytest.mark.one_broker("reads the address of the listener in a broker's log")

SECONDS_MAX = 30
LOCATION = "listener.name.ssl.ssl.keystore.location"


def address(running: RunningBroker) -> str:
    return str(re.findall(r"HTTP listener started on (\S+)", running.log_text())[-1])


def status(url: str, user: str | None, password: str = "", context: ssl.SSLContext | None = None) -> int:
    request = urllib.request.Request(f"{url}/metrics")
    if user is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS_MAX, context=context)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        told = b"kafka_server_" in answer.read()
        assert told == (answer.status == 200)
        assert told or answer.headers["WWW-Authenticate"] == 'Basic realm="ottla"'
        return int(answer.status)


def test_users_of_the_broker_read_metrics_over_its_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        LOCATION: str(certificates.pem("broker", LOCAL_HOSTS)),
        "metrics.listener": "127.0.0.1:0",
        "metrics.listener.tls": "SSL",
        "metrics.listener.login": "scram",
    }
    with broker(settings, data_dir=tmp_path / "data") as running:
        url = address(running)
        assert url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(certificates.ca))
        bootstrap = running.bootstrap_of("PLAINTEXT")
        set_password(bootstrap, "prometheus", "first")
        assert status(url, None, context=trusting) == 401
        for user, password in (("prometheus", "wrong"), ("nobody", "first"), ("prometheus", ""), ("", "first")):
            assert status(url, user, password, trusting) == 401, (user, password)
        assert status(url, "prometheus", "first", trusting) == 200
        set_password(bootstrap, "prometheus", "second")
        assert status(url, "prometheus", "first", trusting) == 401
        assert status(url, "prometheus", "second", trusting) == 200
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            urllib.request.urlopen(url.replace("https", "http"), timeout=SECONDS_MAX)
        _replace_the_certificate(running, certificates, url)
        assert "second" not in running.log_text()


def _replace_the_certificate(running: RunningBroker, certificates: Certificates, url: str) -> None:
    """While the broker runs: https follows the listener whose certificate it has."""

    def shown() -> str:
        host, port = url.removeprefix("https://").split(":")
        return ssl.get_server_certificate((host, int(port)), ca_certs=str(certificates.ca), timeout=SECONDS_MAX)

    before = shown()
    new = certificates.folder / "new.pem"
    certificates.pem("broker", LOCAL_HOSTS).rename(new)
    admin = AdminClient({"bootstrap.servers": running.bootstrap_of("PLAINTEXT")})
    entry = ConfigEntry(LOCATION, str(new), incremental_operation=AlterConfigOpType.SET)
    (done,) = admin.incremental_alter_configs(
        [ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])]
    ).values()
    done.result(SECONDS_MAX)
    wait_until(lambda: shown() != before, "https shows the new certificate", seconds=SECONDS_MAX)


def test_users_of_a_file_read_metrics(tmp_path: Path) -> None:
    users = tmp_path / "users.properties"
    settings = {"metrics.listener": "127.0.0.1:0", "metrics.listener.login": f"file:{users}"}
    with pytest.raises(BrokerDidNotStart, match="No such file"), broker(settings, data_dir=tmp_path / "none"):
        pass
    users.write_text("prometheus=first\n")
    with broker(settings, data_dir=tmp_path / "data") as running:
        url = address(running)
        assert [status(url, user, "first") for user in ("prometheus", "nobody", None)] == [200, 401, 401]
        users.write_text("grafana=other\n")
        assert status(url, "prometheus", "first") == 401
        assert status(url, "grafana", "other") == 200
