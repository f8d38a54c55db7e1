"""The files in config/: every line is accepted and has an effect, those that are commented out as examples too."""

import re
from pathlib import Path

import pytest
from tests.packaging.conftest import ROOT

from ottla.cli.common.options import read_properties
from ottla.cli.data.client_properties import consumer_settings, producer_settings
from ottla.cluster.zookeeper_server import write_config
from ottla.config.broker import BROKER_SETTINGS
from ottla.config.load import load_settings, settings_from

CONFIG = ROOT / "config"
EXAMPLE = re.compile(r"^#([a-zA-Z][\w.]*)=(.*)$", re.MULTILINE)


def examples(name: str) -> dict[str, str]:
    """What would be set if somebody took the # away."""
    return dict(EXAMPLE.findall((CONFIG / name).read_text()))


def test_there_is_a_test_for_each_of_them() -> None:
    assert sorted(path.name for path in CONFIG.iterdir()) == [
        "consumer.properties",
        "producer.properties",
        "server.properties",
        "zookeeper.properties",
    ]


def test_a_broker_takes_every_line_and_has_nothing_to_say_about_it() -> None:
    settings = load_settings(str(CONFIG / "server.properties"))
    assert settings.notes == (), "something in it has no effect, or another name today"
    assert settings.explicit == set(read_properties(str(CONFIG / "server.properties")))


def test_the_values_are_the_defaults_so_that_the_file_changes_nothing_by_itself() -> None:
    """All but those that a broker on its own needs: the replicas of its internal topics."""
    given = read_properties(str(CONFIG / "server.properties"))
    for_one_broker = {name for name in given if name.startswith(("offsets.topic.", "transaction.state."))}
    settings = load_settings(str(CONFIG / "server.properties"))
    declared = {name: BROKER_SETTINGS[name] for name in given if name not in for_one_broker | {"node.id", "log.dirs"}}
    assert len(declared) >= 5
    assert {name: getattr(settings, each.attribute) for name, each in declared.items()} == {
        name: each.default for name, each in declared.items()
    }


def test_a_broker_takes_the_examples_too() -> None:
    given = {**read_properties(str(CONFIG / "server.properties")), **examples("server.properties")}
    assert "zookeeper.connect" in given
    settings = settings_from(given)
    assert settings.notes == ()
    assert settings.explicit == set(given)


@pytest.mark.parametrize("with_examples", [False, True], ids=["as it stands", "with its examples"])
def test_the_tools_take_the_files_of_clients(with_examples: bool) -> None:
    writing, reading = (
        {**read_properties(str(CONFIG / name)), **(examples(name) if with_examples else {})}
        for name in ("producer.properties", "consumer.properties")
    )
    assert writing["bootstrap.servers"] == reading["bootstrap.servers"] == "localhost:9092"
    producer, consumer = producer_settings(writing), consumer_settings(reading)
    assert (producer.notes, consumer.notes) == ((), ()), "a line of it is ignored"
    assert consumer.librdkafka["group.id"] == "test-consumer-group"
    assert producer.librdkafka["compression.type"] == "none"
    protocols = {producer.librdkafka.get("security.protocol"), consumer.librdkafka.get("security.protocol")}
    assert {str(name).lower() for name in protocols} == ({"sasl_ssl"} if with_examples else {"none"})


def test_the_file_of_zookeeper_says_what_our_own_would(tmp_path: Path) -> None:
    """`ottla zookeeper` without a file writes one; ZooKeeper itself is what reads either."""
    given = {**read_properties(str(CONFIG / "zookeeper.properties")), **examples("zookeeper.properties")}
    own = read_properties(str(write_config(tmp_path)))
    written = {name: value for name, value in given.items() if name != "dataDir" and not name.startswith("server.")}
    assert written == {name: own[name] for name in written}
    assert set(own) - set(given) == {"4lw.commands.whitelist"}, "which has a default for files that do not say"
