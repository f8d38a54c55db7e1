"""The limits of docs/schemas.md, each from both sides: what is just within is taken, what is beyond is refused."""

import json
import stat
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.registry.client import RegistryClient
from ottla.registry.errors import Code, RegistryError, TooComplex
from ottla.registry.limits import LIMITS
from ottla.registry.schemas import protoc
from ottla.registry.schemas.protobuf import parse_protobuf
from ottla.testing.load import quiet
from ottla.testing.registry import registry
from ottla.testing.running import RunningBroker


def enum_of(size: int) -> str:
    """An Avro schema whose text has exactly so many bytes, as it is stored."""
    empty = json.dumps({"type": "enum", "name": "E", "doc": "", "symbols": ["a"]}, separators=(",", ":"))
    return empty.replace('"doc":""', f'"doc":"{"x" * (size - len(empty))}"')


def refused(client: RegistryClient, subject: str, text: str, **more: object) -> RegistryError:
    with pytest.raises(RegistryError) as caught:
        client.call("POST", f"/subjects/{subject}/versions", body={"schema": text, **more})
    return caught.value


def test_one_mebibyte(client: RegistryClient, subject: str) -> None:
    size = LIMITS.schema_bytes_max
    assert client.register(subject, enum_of(size)).version == 1
    found = refused(client, subject, enum_of(size + 1))
    assert (found.code, found.status) == (Code.TOO_LARGE, 422)
    assert str(size) in str(found)
    assert client.versions(subject) == [1]


def test_a_record_that_the_topic_refuses_costs_its_own_request(ottla_broker: RunningBroker) -> None:
    """A topic that was there before may take less. Whoever registers next is not refused for it."""
    admin = AdminClient({"bootstrap.servers": ottla_broker.bootstrap}, logger=quiet)
    config = {"cleanup.policy": "compact", "max.message.bytes": "10000"}
    admin.create_topics([NewTopic("_small", 1, config=config)])["_small"].result(30)
    with (
        registry(ottla_broker.bootstrap, "--topic", "_small", "--group", "small") as running,
        RegistryClient(running.url) as client,
    ):
        for number in range(3):
            found = refused(client, "a-value", enum_of(20_000))
            assert found.code == Code.TOO_LARGE
            assert "max.message.bytes" in str(found)
            assert client.register(f"b{number}-value", enum_of(100)).version == 1


def test_one_mebibyte_with_references(client: RegistryClient, subject: str) -> None:
    client.register(f"{subject}-half", enum_of(LIMITS.schema_bytes_max // 2))
    text = '{"type":"record","name":"R","doc":"%s","fields":[{"name":"e","type":"E"}]}'
    references = [{"name": "E", "subject": f"{subject}-half", "version": 1}]
    found = refused(client, subject, text % ("x" * (LIMITS.schema_bytes_max // 2)), references=references)
    assert found.code == Code.TOO_LARGE
    body = {"schema": text % "x", "references": references}
    assert client.call("POST", f"/subjects/{subject}/versions", body=body)["version"] == 1


def test_five_hundred_references(client: RegistryClient, subject: str) -> None:
    count = LIMITS.references_max
    fixed = [json.dumps({"type": "fixed", "name": f"F{number}", "size": number}) for number in range(count + 1)]
    client.call("PUT", f"/config/{subject}-part", body={"compatibility": "NONE"})
    versions = [client.register(f"{subject}-part", text).version for text in fixed]
    references = [{"name": f"F{n}", "subject": f"{subject}-part", "version": v} for n, v in enumerate(versions)]
    fields = [{"name": f"f{number}", "type": f"F{number}"} for number in range(count + 1)]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    found = refused(client, subject, text, references=references)
    assert found.code == Code.TOO_LARGE
    assert "500 references" in str(found)
    fewer = json.dumps({"type": "record", "name": "R", "fields": fields[:count]})
    body = {"schema": fewer, "references": references[:count]}
    assert client.call("POST", f"/subjects/{subject}/versions", body=body)["version"] == 1


def test_protoc_is_ended_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No text is known that takes protoc so long: one that never ends stands in for it."""
    endless = tmp_path / "protoc"
    endless.write_text("#!/bin/sh\nexec sleep 1000\n")
    endless.chmod(stat.S_IRWXU)
    monkeypatch.setattr(protoc, "protoc_path", lambda: str(endless))
    with pytest.raises(TooComplex, match=r"within 0.2 s"):
        parse_protobuf('syntax = "proto3"; message M {}', limits=LIMITS._replace(protoc_seconds_max=0.2))
