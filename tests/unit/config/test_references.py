"""Secrets that stand elsewhere than in a settings file."""

from pathlib import Path

import pytest

from ottla.cli.common.options import read_properties
from ottla.cli.common.output import CommandError
from ottla.config.load import load_settings
from ottla.config.references import resolve
from ottla.config.setting import ConfigError

FILE_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text("key=from the file\nempty=\n")
    (tmp_path / "one").write_text("whole\n")
    return path


def test_values_come_from_the_environment_and_from_files(secrets: Path) -> None:
    given = {
        "a": "${env:NAME}",
        "b": "x${env::NAME}y",
        "c": f"${{file:{secrets}:key}}",
        "d": f"${{file:{secrets.parent / 'one'}}}",
        "e": f"${{dir:{secrets.parent}:one}} twice ${{env:NAME}}",
        "f": "${other:thing} $5 ${} ${env}",
    }
    assert resolve(given, {"NAME": "value"}) == {
        "a": "value",
        "b": "xvaluey",
        "c": "from the file",
        "d": "whole",
        "e": "whole twice value",
        "f": "${other:thing} $5 ${} ${env}",
    }


def test_providers_may_have_other_names(secrets: Path) -> None:
    given = {
        "config.providers": "vault",
        "config.providers.vault.class": FILE_PROVIDER,
        "a": f"${{vault:{secrets}:key}}",
    }
    assert resolve(given, {}) == {"a": "from the file"}


def test_everything_that_is_missing_is_told_and_no_secret(secrets: Path) -> None:
    given = {
        "a": "${env:NOWHERE}",
        "b": f"${{file:{secrets}:other}}",
        "c": "${file:/nowhere/at/all:key}",
        "config.providers": "vault",
        "config.providers.vault.class": "com.example.Vault",
    }
    with pytest.raises(ConfigError) as failed:
        resolve(given, {})
    told = "\n".join(failed.value.problems)
    for words in ("no environment variable NOWHERE", "has no other", "No such file", "vault.class: classes of the JVM"):
        assert words in told
    assert "from the file" not in told


def test_a_broker_and_a_tool_read_them(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACK", "r1")
    config = secrets.parent / "server.properties"
    config.write_text("config.providers=env\nbroker.rack=${env:RACK}\n")
    assert load_settings(str(config)).broker_rack == "r1"
    assert load_settings(None, ["broker.rack=${env:RACK}"]).broker_rack == "r1"
    client = secrets.parent / "client.properties"
    client.write_text(f"sasl.password=${{file:{secrets}:key}}\n")
    assert read_properties(str(client)) == {"sasl.password": "from the file"}
    client.write_text("sasl.password=${env:NOWHERE}\n")
    with pytest.raises(CommandError, match="no environment variable NOWHERE"):
        read_properties(str(client))
