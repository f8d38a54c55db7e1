"""docs/security-tls.md, tried as it stands there but for the port."""

import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli.main import main
from ottla.config.load import settings_from
from ottla.config.properties import parse_properties
from ottla.testing import broker
from ottla.testing.tls import Certificates
from ottla.tls.authority import LOCAL_HOSTS

PAGE = (Path(__file__).parents[2] / "docs" / "security-tls.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_a_broker_with_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    server, client = blocks("properties")
    (program,) = blocks("python")
    certificates = Certificates(tmp_path)
    certificates.pem("broker", LOCAL_HOSTS)
    monkeypatch.chdir(tmp_path)
    settings = {**parse_properties(server), "listeners": "SSL://127.0.0.1:0"}
    for name in ("ssl.keystore.location", "ssl.truststore.location"):
        settings[name] = str(tmp_path / settings[name])
    with broker({**settings, "log.dirs": str(tmp_path / "data")}) as running:
        Path("client.properties").write_text(client)
        to = ["--bootstrap-server", running.bootstrap, "--command-config", "client.properties"]
        assert main(["topics", *to, "--create", "--topic", "news"]) == 0
        assert "Created topic news" in capsys.readouterr().out
        names: dict[str, Producer] = {}
        exec(program.replace("localhost:9093", running.bootstrap), names)
        producer = names["producer"]
        producer.produce("news", b"hello")
        assert producer.flush(30) == 0
        rotation = re.search(r"--add-config (\S+)=broker-2027.pem", PAGE)
        assert rotation is not None
        renewed = certificates.pem("broker", LOCAL_HOSTS).rename(tmp_path / "broker-2027.pem")
        alter = ["--entity-type", "brokers", "--entity-name", "1", "--alter", "--add-config"]
        assert main(["configs", *to, *alter, f"{rotation[1]}={renewed}"]) == 0
        assert main(["topics", *to, "--list"]) == 0


def test_the_listeners_of_the_page_are_settings() -> None:
    indented = dict(re.findall(r"^    ([a-z][a-z.]+)=(.*)$", PAGE, re.MULTILINE))
    assert {"listeners", "ssl.client.auth", "ssl.principal.mapping.rules"} <= set(indented)
    assert settings_from({**indented, "ssl.keystore.location": "x"}).ssl_client_auth == "required"
