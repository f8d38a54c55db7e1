"""kafka-configs for users, clients and addresses against a real broker."""

import json
from collections.abc import Callable, Iterator

import pytest

from ottla.cli.admin.client_quotas import java_double
from ottla.cli.main import main
from ottla.testing import RunningBroker

Configs = Callable[..., list[str]]


@pytest.fixture
def configs(ottla_broker: RunningBroker, capsys: pytest.CaptureFixture[str]) -> Iterator[Configs]:
    """Runs the tool and returns the lines that it printed. Whatever it has set is taken away in the end."""
    altered: list[list[str]] = []

    def run(*arguments: str) -> list[str]:
        assert main(["configs", "--bootstrap-server", ottla_broker.bootstrap, *arguments]) == 0
        return capsys.readouterr().out.splitlines()

    def run_and_remember(*arguments: str) -> list[str]:
        if "--add-config" in arguments:
            given = arguments[arguments.index("--add-config") + 1]
            whose = [a for a in arguments if a not in ("--alter", "--add-config", given)]
            altered.append([*whose, "--delete-config", ",".join(pair.split("=")[0] for pair in given.split(","))])
        return run(*arguments)

    yield run_and_remember
    for whose in altered:
        run("--alter", *whose)


def test_quotas_of_users_clients_and_both(configs: Configs) -> None:
    long = ["--entity-type", "users", "--entity-name", "quota-u", "--entity-type", "clients", "--entity-default"]
    added = "producer_byte_rate=1024,consumer_byte_rate=20971520"
    assert configs("--alter", *long, "--add-config", added) == ["Completed updating config for user quota-u."]
    with_default = (
        "Quota configs for user-principal 'quota-u', the default client-id are "
        "producer_byte_rate=1024.0, consumer_byte_rate=2.097152E7"
    )
    assert configs("--describe", *long) == [with_default]
    assert configs("--describe", "--user", "quota-u") == [], "its own quotas, not those together with a client"
    configs("--alter", "--user", "quota-u", "--client", "quota-c", "--add-config", "request_percentage=12.5")
    configs("--alter", "--user", "quota-u", "--add-config", "controller_mutation_rate=3")
    assert configs("--describe", "--entity-type", "users", "--entity-name", "quota-u") == [
        "Quota configs for user-principal 'quota-u' are controller_mutation_rate=3.0"
    ]
    assert configs("--describe", "--entity-type", "users", "--entity-type", "clients") == [
        "Quota configs for user-principal 'quota-u', client-id 'quota-c' are request_percentage=12.5",
        with_default,
    ]
    configs("--alter", *long, "--delete-config", "producer_byte_rate")
    shown = configs("--describe", "--json", *long)
    assert json.loads("".join(shown)) == [
        {"entity": {"user": "quota-u", "client-id": None}, "quotas": {"consumer_byte_rate": 20971520.0}}
    ]


def test_defaults_and_addresses(configs: Configs) -> None:
    assert configs("--alter", "--client-defaults", "--add-config", "producer_byte_rate=1000000000") == [
        "Completed updating default config for clients in the cluster."
    ]
    assert configs("--describe", "--entity-type", "clients", "--entity-default") == [
        "Quota configs for the default client-id are producer_byte_rate=1.0E9"
    ]
    configs("--alter", "--user-defaults", "--add-config", "producer_byte_rate=2000000000")
    assert configs("--describe", "--user-defaults") == [
        "Quota configs for the default user-principal are producer_byte_rate=2.0E9"
    ]
    configs("--alter", "--ip", "192.0.2.7", "--add-config", "connection_creation_rate=10")
    configs("--alter", "--ip-defaults", "--add-config", "connection_creation_rate=1000")
    assert configs("--describe", "--entity-type", "ips") == [
        "Quota configs for ip '192.0.2.7' are connection_creation_rate=10.0",
        "Quota configs for the default ip are connection_creation_rate=1000.0",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--user", "u", "--add-config", "retention.ms=1"],
            "Unexpected config names: retention.ms; there are producer",
        ),
        (["--ip", "192.0.2.1", "--add-config", "producer_byte_rate=1"], "Only connection quota configs"),
        (["--user", "u", "--add-config", "producer_byte_rate=much"], "Cannot parse quota configuration value"),
        (["--user", "u", "--add-config", "producer_byte_rate=-1"], "Quota producer_byte_rate must be greater than 0"),
        (["--ip", "nowhere", "--add-config", "connection_creation_rate=1"], "is not a valid IP"),
        (["--user", "u", "--ip", "192.0.2.1", "--add-config", "producer_byte_rate=1"], "not for users and ips"),
        (["--topic", "t", "--user", "u", "--add-config", "producer_byte_rate=1"], "not for users and topics"),
        (
            [
                "--entity-type",
                "users",
                "--entity-name",
                "a",
                "--entity-name",
                "b",
                "--add-config",
                "producer_byte_rate=1",
            ],
            "for each --entity-type",
        ),
    ],
)
def test_what_cannot_be_is_told(
    ottla_broker: RunningBroker, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["configs", "--bootstrap-server", ottla_broker.bootstrap, "--alter", *arguments]) == 1
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "shown"),
    [(1024, "1024.0"), (12.5, "12.5"), (1e7, "1.0E7"), (10485760, "1.048576E7"), (1e-4, "1.0E-4"), (1e22, "1.0E22")],
)
def test_numbers_are_shown_as_java_does(number: float, shown: str) -> None:
    assert java_double(number) == shown
