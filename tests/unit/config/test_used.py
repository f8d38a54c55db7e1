"""Nothing is accepted and ignored: every setting is read by the code that it steers."""

import re
from pathlib import Path

import ottla
from ottla.config.broker import BROKER_SETTINGS
from ottla.config.topic import TOPIC_SETTINGS

SOURCE = Path(ottla.__file__).parent

# Settings that need no reader, each with the reason.
WITHOUT_READER = {
    "unclean.leader.election.enable": "kept for clients that set it; with one replica nothing is ever elected",
    "sasl.server.callback.handler.class": "only the class that names what is done anyway may be given",
    "password.encoder.cipher.algorithm": "has one value",
    "broker.id": "the old name of node.id, which is read",
}


def text_of(folder: Path, without: str = "") -> str:
    files = [path for path in folder.rglob("*.py") if not without or without not in path.relative_to(folder).parts]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


def test_every_setting_is_read_somewhere() -> None:
    readers = text_of(SOURCE, without="config")
    # Listeners, directories and controllers are read by functions beside the tables, which others call.
    readers += "".join(
        (SOURCE / "config" / name).read_text()
        for name in (
            "group_coordinator.py",
            "listeners.py",
            "load.py",
            "password_encoder.py",
            "quorum.py",
            "sasl_listeners.py",
            "stored_passwords.py",
            "zookeeper.py",
        )
    )
    assert ".data_dirs" in readers
    through_topics = {synonym.name for declared in TOPIC_SETTINGS.values() for synonym in declared.synonyms}
    unread = [
        declared.name
        for declared in (*BROKER_SETTINGS.values(), *TOPIC_SETTINGS.values())
        if declared.fixed is None
        and declared.name not in through_topics
        and declared.name not in WITHOUT_READER
        and declared.name not in ("log.dir", "log.dirs")
        and not re.search(rf"\.{declared.attribute}\b", readers)
    ]
    assert unread == []


def test_the_exceptions_are_settings() -> None:
    assert set(WITHOUT_READER) <= set(BROKER_SETTINGS) | set(TOPIC_SETTINGS)
