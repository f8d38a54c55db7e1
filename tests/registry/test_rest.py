"""The REST API where clients do not go: odd paths, refusals by code, contexts by path, schemas made to hurt."""

import json
import threading
from typing import Any

import pytest

from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.testing.registry import RunningRegistry, registry
from ottla.testing.running import RunningBroker

INT, LONG, STRING = '"int"', '"long"', '"string"'


def refused(client: RegistryClient, method: str, path: str, body: dict[str, Any] | None = None, **query: str) -> int:
    with pytest.raises(RegistryError) as caught:
        client.call(method, path, query, body)
    return caught.value.code


def test_codes(client: RegistryClient, subject: str) -> None:
    client.register(subject, INT)
    path = f"/subjects/{subject}"
    wanted: list[tuple[int, str, str, dict[str, Any] | None, dict[str, str]]] = [
        (40401, "GET", "/subjects/nobody/versions", None, {}),
        (40402, "GET", f"{path}/versions/9", None, {}),
        (40403, "GET", "/schemas/ids/99999", None, {}),
        (40403, "GET", "/schemas/ids/x", None, {}),
        (40403, "POST", path, {"schema": STRING}, {}),
        (40405, "DELETE", path, None, {"permanent": "true"}),
        (40407, "DELETE", f"{path}/versions/1", None, {"permanent": "true"}),
        (40408, "GET", f"/config/{subject}", None, {}),
        (40409, "GET", f"/mode/{subject}", None, {}),
        (40410, "DELETE", "/associations/resources/nothing", None, {}),
        (40901, "POST", f"{path}/versions", {"schema": STRING}, {}),
        (42201, "POST", f"{path}/versions", {"schema": "{"}, {}),
        (42201, "POST", f"{path}/versions", {"schema": ""}, {}),
        (42201, "POST", f"{path}/versions", {}, {}),
        (42202, "GET", f"{path}/versions/0", None, {}),
        (42202, "GET", f"{path}/versions/abc", None, {}),
        (42203, "PUT", "/config", {"compatibility": "SOME"}, {}),
        (42204, "PUT", f"/mode/{subject}", {"mode": "ANY"}, {}),
        (42205, "PUT", f"/mode/{subject}", {"mode": "IMPORT"}, {}),
        (42205, "POST", f"{path}/versions", {"schema": LONG, "id": 5}, {}),
        (42208, "POST", "/subjects/%00/versions", {"schema": INT}, {}),
        (42209, "POST", f"{path}/versions", {"schema": json.dumps({"type": "int", "x": "y" * 1_100_000})}, {}),
        (42210, "POST", f"{path}/versions", {"schema": INT, "ruleSet": {"domainRules": [{"name": "x"}]}}, {}),
        (42212, "POST", "/associations", {}, {}),
        (404, "GET", "/nothing", None, {}),
        (405, "DELETE", "/subjects", None, {}),
    ]
    for code, method, where, body, query in wanted:
        assert refused(client, method, where, body, **query) == code, (method, where)
    client.call("DELETE", path)
    assert refused(client, "DELETE", path) == 40404
    assert refused(client, "DELETE", f"{path}/versions/1") == 40406


def test_odd_subjects_are_found_again(client: RegistryClient) -> None:
    for name in ("a/b", "ä ö", "x?y=z", "100%", "a+b"):
        client.register(name, INT)
        assert client.versions(name) == [1]
        assert name in client.get("/subjects")


def test_contexts_by_path(client: RegistryClient, subject: str) -> None:
    base = f"/contexts/.{subject.replace('_', '-')}"
    made = client.call("POST", f"{base}/subjects/{subject}/versions", None, {"schema": LONG})
    assert made["id"] == 1
    assert client.get(f"{base}/subjects") == [f":.{subject.replace('_', '-')}:{subject}"]
    assert client.get(f"{base}/schemas/ids/1")["schema"] == LONG
    assert refused(client, "DELETE", base) == 42211
    for query in ({}, {"permanent": "true"}):
        client.call("DELETE", f"{base}/subjects/{subject}", query)
    client.call("DELETE", base)
    assert f".{subject.replace('_', '-')}" not in client.get("/contexts")


def test_contexts_are_listed_by_prefix(client: RegistryClient, subject: str) -> None:
    context = f".{subject.replace('_', '-')}"
    client.call("POST", f"/contexts/{context}/subjects/x/versions", None, {"schema": LONG})
    assert client.get("/contexts", {"contextPrefix": context}) == [context]
    assert refused(client, "GET", f"/contexts/{context}") == 405, "as Confluent's: a context is listed, or deleted"
    assert client.get(f"/contexts/{context}/config")["compatibilityLevel"] == "BACKWARD"


def test_what_the_registry_says_of_itself(client: RegistryClient) -> None:
    assert client.get("/") == client.call("POST", "/", None, {}) == {}
    assert client.get("/v1/metadata/deployment") == {"attributes": []}
    assert "version" in client.get("/v1/metadata/version")


def test_lists_of_versions_and_schemas(client: RegistryClient, subject: str) -> None:
    rules = {"domainRules": [{"name": "n", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    client.register(subject, INT)
    client.call("POST", f"/subjects/{subject}/versions", None, {"schema": LONG, "ruleSet": rules})
    client.call("DELETE", f"/subjects/{subject}/versions/1")
    assert client.get(f"/subjects/{subject}/versions", {"deletedAsNegative": "true"}) == [-1, 2]
    found = client.get("/schemas", {"subjectPrefix": subject, "ruleType": "CEL", "deleted": "true"})
    assert [each["version"] for each in found] == [2]
    client.call("PUT", f"/config/alias-of-{subject}", None, {"alias": subject})
    assert client.get("/schemas", {"subjectPrefix": "alias-of-"}) == []
    (by_alias,) = client.get("/schemas", {"subjectPrefix": "alias-of-", "aliases": "true"})
    assert (by_alias["subject"], by_alias["aliases"]) == (subject, [f"alias-of-{subject}"])


def test_associations_one_by_one_and_several_at_once(client: RegistryClient, subject: str) -> None:
    client.register(subject, INT)
    resource = {"resourceName": subject, "resourceNamespace": "lkc", "resourceType": "topic"}
    link = {"subject": subject, "associationType": "value"}
    path = f"/associations/resources/{subject}-id"
    body = {**resource, "associations": [link]}
    client.call("PUT", path, {"dryRun": "true"}, body)
    assert client.get(path) == []
    assert client.call("PUT", path, None, body)["associations"][0]["subject"] == subject
    assert refused(client, "PUT", path, {**body, "resourceId": "another"}) == 42212
    assert [each["subject"] for each in client.get(path, {"lifecycle": "WEAK"})] == [subject]
    assert client.get(path, {"lifecycle": "STRONG"}) == []
    asked = {"requests": [{"resourceName": subject}, {"resourceId": "nobody"}]}
    results = client.call("POST", "/associations:batchGet", None, asked)["results"]
    assert [len(each["result"]["associations"]) for each in results] == [1, 0]
    whole = {**resource, "resourceId": f"{subject}-id"}
    changes = [
        {**whole, "associations": [{"opType": "UPSERT", "associationType": "key", "subject": subject}]},
        {**whole, "associations": [{"opType": "DELETE", "associationType": "value"}]},
        {**whole, "associations": [{"opType": "CREATE", "associationType": "value", "subject": "nobody-value"}]},
        {**whole, "associations": [{"opType": "SOME"}]},
    ]
    results = client.call("POST", "/associations:batchMutate", None, {"requests": changes})["results"]
    assert [each.get("error", {}).get("error_code") for each in results] == [None, None, 40401, 42212]
    assert [each["associationType"] for each in client.get(path)] == ["key"]
    assert refused(client, "POST", "/associations:batchGet", {}) == 42212


def test_levels_decide(client: RegistryClient, subject: str) -> None:
    client.call("PUT", f"/config/{subject}", None, {"compatibility": "NONE"})
    for text in (INT, STRING, LONG):
        client.register(subject, text)
    verdicts = {}
    for level in (
        "NONE",
        "BACKWARD",
        "BACKWARD_TRANSITIVE",
        "FORWARD",
        "FORWARD_TRANSITIVE",
        "FULL",
        "FULL_TRANSITIVE",
    ):
        client.call("PUT", f"/config/{subject}", None, {"compatibility": level})
        path = f"/compatibility/subjects/{subject}/versions"
        verdicts[level] = [
            client.call("POST", path, None, {"schema": text})["is_compatible"] for text in ('"double"', INT)
        ]
    assert verdicts == {
        "NONE": [True, True],
        "BACKWARD": [True, False],
        "BACKWARD_TRANSITIVE": [False, False],
        "FORWARD": [False, True],
        "FORWARD_TRANSITIVE": [False, False],
        "FULL": [False, False],
        "FULL_TRANSITIVE": [False, False],
    }


def test_another_type_does_not_follow(client: RegistryClient, subject: str) -> None:
    client.register(subject, INT)
    with pytest.raises(RegistryError, match="schemas of type AVRO, not JSON"):
        client.register(subject, "{}", "JSON")


def test_an_alias_is_the_subject(client: RegistryClient, subject: str) -> None:
    client.register(subject, INT)
    client.call("PUT", f"/config/{subject}-alias", None, {"alias": subject})
    assert client.latest(f"{subject}-alias").text == INT
    assert client.register(f"{subject}-alias", LONG).version == 2


def test_texts_and_lists(client: RegistryClient, subject: str) -> None:
    made = client.register(subject, INT)
    assert client.get(f"/schemas/ids/{made.schema_id}/schema") == "int", "the text itself"
    assert client.get(f"/subjects/{subject}/versions/latest/schema") == "int"
    assert client.get(f"/schemas/guids/{made.guid}/ids") == [{"context": ".", "id": made.schema_id}]
    assert client.get("/schemas/ids/1", {"fetchMaxId": "true"})["maxId"] >= made.schema_id
    assert len(client.get("/subjects", {"limit": "1"})) == 1
    assert client.get("/version")["version"]
    assert client.get("/v1/metadata/id")["scope"]["clusters"]["kafka-cluster"]
    assert client.get("/schemas", {"subjectPrefix": subject, "latestOnly": "true"})[0]["id"] == made.schema_id


def test_a_bomb_costs_its_own_request(client: RegistryClient, registry_process: RunningRegistry, subject: str) -> None:
    """Others are answered while it is looked at, and it is refused."""
    choices: Any = {"type": "string"}
    for number in range(13):
        choices = {"anyOf": [choices, {"type": "object", "properties": {f"p{number}": choices}}]}
    text = json.dumps(choices)
    client.register(subject, text, "JSON")
    codes: list[int] = []

    def explode() -> None:
        with RegistryClient(registry_process.url, seconds_max=300) as own:
            try:
                own.register(subject, text.replace("string", "integer"), "JSON")
            except RegistryError as error:
                codes.append(error.code)

    thread = threading.Thread(target=explode)
    thread.start()
    answered = 0
    while thread.is_alive() and answered < 20:
        client.get("/subjects")
        answered += 1
    thread.join()
    assert codes == [42209]
    assert answered > 0


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/subjects/{s}/versions", {"schema": '{"type":"enum","name":"E","doc":"\\ud800","symbols":["a"]}'}),
        ("POST", "/subjects/{s}/versions", {"schema": '"\ud800"'}),
        ("POST", "/subjects/{s}/versions", {"schema": '{"\\ud800":1,"\\ud800":2}', "schemaType": "JSON"}),
        ("POST", "/subjects/{s}/versions", {"schema": 'syntax = "proto3"; // \ud800', "schemaType": "PROTOBUF"}),
        ("POST", "/subjects/{s}/versions", {"schema": '{"enum":[1e999]}', "schemaType": "JSON"}),
        ("POST", "/subjects/{s}/versions", {"schema": INT, "metadata": {"properties": {"owner": "\ud800"}}}),
        ("POST", "/subjects/{s}/versions", {"schema": INT, "id": 2**31}),
        (
            "POST",
            "/subjects/{s}/versions",
            {"schema": INT, "references": [{"name": "a", "subject": "b", "version": 2**40}]},
        ),
        ("PUT", "/config/{s}", {"alias": "\ud800"}),
    ],
)
def test_what_no_record_could_have(client: RegistryClient, method: str, path: str, body: dict[str, Any]) -> None:
    for _ in range(2):
        assert refused(client, method, path.format(s="hostile-value"), body) == 42201
    assert client.register("hostile-value", INT).version == 1


def test_what_was_written_is_there_after_a_restart(ottla_fresh_broker: RunningBroker) -> None:
    with registry(ottla_fresh_broker.bootstrap) as first, RegistryClient(first.url) as client:
        made = client.register("kept-value", INT)
        client.call("PUT", "/config/kept-value", None, {"compatibility": "FULL"})
    with registry(ottla_fresh_broker.bootstrap) as second, RegistryClient(second.url) as client:
        assert client.latest("kept-value").schema_id == made.schema_id
        assert client.get("/config/kept-value") == {"compatibilityLevel": "FULL"}
        assert client.register("next-value", LONG).schema_id == made.schema_id + 1
