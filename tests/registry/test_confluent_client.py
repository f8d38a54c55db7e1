"""confluent-kafka's registry client: every call of its API, against a registry that runs."""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    MetadataTags,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
)

from ottla.testing.registry import RunningRegistry

FIRST = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}]}'
SECOND = FIRST.replace("}]}", '},{"name":"note","type":"string","default":""}]}')
WRONG = '{"type":"record","name":"Order","fields":[{"name":"id","type":"string"}]}'


@pytest.fixture
def confluent(registry_process: RunningRegistry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry_process.url}) as client:
        yield client


def avro(text: str, **more: object) -> Schema:
    return Schema(text, "AVRO", **more)


def code_of(caught: pytest.ExceptionInfo[SchemaRegistryError]) -> int:
    return int(caught.value.error_code)


def test_register_look_up_and_read_back(confluent: SchemaRegistryClient, subject: str) -> None:
    registered = confluent.register_schema_full_response(subject, avro(FIRST))
    assert registered.version == 1
    assert registered.guid
    assert confluent.register_schema(subject, avro(FIRST)) == registered.schema_id
    second = confluent.register_schema(subject, avro(SECOND))
    assert second != registered.schema_id
    assert json.loads(confluent.get_schema(second).schema_str) == json.loads(SECOND)
    assert confluent.get_schema_by_guid(registered.guid).schema_str == FIRST
    assert confluent.lookup_schema(subject, avro(SECOND)).version == 2
    assert confluent.get_latest_version(subject).schema_id == second
    assert confluent.get_version(subject, 1).schema_id == registered.schema_id
    assert confluent.get_versions(subject) == [1, 2]
    assert subject in confluent.get_subjects()
    assert confluent.get_subjects_by_schema_id(second) == [subject]
    assert [(each.subject, each.version) for each in confluent.get_schema_versions(second)] == [(subject, 2)]
    assert sorted(confluent.get_schema_types()) == ["AVRO", "JSON", "PROTOBUF"]
    assert "." in confluent.get_contexts()


def test_one_text_has_one_id_in_all_subjects(confluent: SchemaRegistryClient, subject: str) -> None:
    schema = avro(FIRST.replace("Order", "Shared"))
    assert confluent.register_schema(f"{subject}-a", schema) == confluent.register_schema(f"{subject}-b", schema)


def test_an_incompatible_schema_is_refused(confluent: SchemaRegistryClient, subject: str) -> None:
    confluent.register_schema(subject, avro(FIRST))
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.register_schema(subject, avro(WRONG))
    assert code_of(caught) == 40901
    assert "a reader of string cannot read int" in str(caught.value)
    assert not confluent.test_compatibility(subject, avro(WRONG))
    assert confluent.test_compatibility(subject, avro(SECOND))
    assert confluent.test_compatibility(subject, avro(SECOND), version=1)
    assert confluent.test_compatibility_all_versions(subject, avro(SECOND))


def test_what_is_no_schema_is_refused(confluent: SchemaRegistryClient, subject: str) -> None:
    for text in ("{", '{"type":"nonsense"}', '{"type":"record","name":"A","fields":[{"name":"1","type":"int"}]}'):
        with pytest.raises(SchemaRegistryError) as caught:
            confluent.register_schema(subject, avro(text))
        assert code_of(caught) == 42201


def test_deletes(confluent: SchemaRegistryClient, subject: str) -> None:
    first = confluent.register_schema(subject, avro(FIRST))
    confluent.register_schema(subject, avro(SECOND))
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.delete_version(subject, 1, permanent=True)
    assert code_of(caught) == 40407
    assert confluent.delete_version(subject, 1) == 1
    assert confluent.get_versions(subject) == [2]
    assert confluent.get_versions(subject, deleted=True) == [1, 2]
    confluent.clear_caches()
    assert confluent.get_schema(first).schema_str == FIRST, "ids go on to resolve"
    confluent.delete_subject(subject)
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.get_versions(subject)
    assert code_of(caught) == 40401
    confluent.clear_caches()
    again = confluent.register_schema_full_response(subject, avro(FIRST))
    assert (again.schema_id, again.version) == (first, 3), "the same id, and numbers go on"
    confluent.delete_subject(subject)
    confluent.delete_subject(subject, permanent=True)
    assert subject not in confluent.get_subjects(deleted=True)


def test_config_and_mode(confluent: SchemaRegistryClient, subject: str) -> None:
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.get_config(subject)
    assert code_of(caught) == 40408
    confluent.set_compatibility(subject, "FULL_TRANSITIVE")
    assert confluent.get_compatibility(subject) == "FULL_TRANSITIVE"
    confluent.set_config(
        subject, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE, compatibility_group="owner")
    )
    assert confluent.get_config(subject).compatibility_group == "owner"
    confluent.delete_config(subject)
    assert confluent.get_compatibility() == "BACKWARD"
    assert confluent.update_mode(subject, "READONLY") is not None
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.register_schema(subject, avro(FIRST))
    assert code_of(caught) == 42205
    confluent.delete_mode(subject)
    assert confluent.get_global_mode() == "READWRITE"
    confluent.update_global_mode("READWRITE")
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.get_mode(subject)
    assert code_of(caught) == 40409


def test_metadata_and_rules_are_kept(confluent: SchemaRegistryClient, subject: str) -> None:
    metadata = Metadata(
        tags=MetadataTags({"**.note": ["PII"]}), properties=MetadataProperties({"owner": "shop"}), sensitive=[]
    )
    rule = Rule(
        "checked", "", RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "message.id > 0", None, None, False
    )
    schema = avro(SECOND.replace("Order", "Ruled"), metadata=metadata, rule_set=RuleSet(None, [rule], None))
    confluent.register_schema(subject, schema)
    found = confluent.get_latest_with_metadata(subject, {"owner": "shop"})
    assert found.schema.metadata.properties.properties == {"owner": "shop"}
    assert found.schema.rule_set.domain_rules[0].expr == "message.id > 0"
    with pytest.raises(SchemaRegistryError):
        confluent.get_latest_with_metadata(subject, {"owner": "nobody"})


def test_references(confluent: SchemaRegistryClient, subject: str) -> None:
    item = '{"type":"record","name":"Item","namespace":"shop","fields":[{"name":"id","type":"int"}]}'
    order = '{"type":"record","name":"Basket","fields":[{"name":"item","type":"shop.Item"}]}'
    confluent.register_schema(f"{subject}-item", avro(item))
    reference = SchemaReference("shop.Item", f"{subject}-item", 1)
    registered = confluent.register_schema(subject, avro(order, references=[reference]))
    assert confluent.get_referenced_by(f"{subject}-item", 1) == [registered]
    confluent.clear_caches()
    assert '"name":"Item"' in confluent.get_schema(registered, fmt="resolved").schema_str
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.delete_version(f"{subject}-item", 1)
    assert code_of(caught) == 42206
    with pytest.raises(SchemaRegistryError) as caught:
        confluent.register_schema(subject, avro(order.replace("Basket", "Other"), references=[]))
    assert code_of(caught) == 42201


def test_normalising_makes_one_of_two_texts(confluent: SchemaRegistryClient, subject: str) -> None:
    one = '{"type":"record","name":"a.N","fields":[{"name":"x","type":"int","z":1,"b":2}]}'
    other = '{"name":"N","namespace":"a","fields":[{"b":2,"z":1,"name":"x","type":{"type":"int"}}],"type":"record"}'
    first = confluent.register_schema(subject, avro(one), normalize_schemas=True)
    assert confluent.register_schema(subject, avro(other), normalize_schemas=True) == first
    assert confluent.lookup_schema(subject, avro(other), normalize_schemas=True).version == 1


def test_contexts_count_their_own_ids(confluent: SchemaRegistryClient, subject: str) -> None:
    context = subject.replace("_", "-")
    assert confluent.register_schema(f":.{context}:{subject}", avro(FIRST.replace("Order", "InContext"))) == 1
    assert f".{context}" in confluent.get_contexts()
    assert confluent.get_versions(f":.{context}:{subject}") == [1]
    assert f":.{context}:{subject}" in confluent.get_subjects(subject_prefix=f":.{context}:")


def test_associations(confluent: SchemaRegistryClient, subject: str) -> None:
    topic = subject.removesuffix("-value")
    assert confluent.get_associations_by_resource_name(topic, "-", "topic", ["value"]) == []
    info = AssociationCreateOrUpdateInfo(subject=subject, association_type="value", schema=avro(FIRST))
    request = AssociationCreateOrUpdateRequest(topic, "cluster", f"{topic}-id", "topic", [info])
    assert confluent.create_association(request).associations[0].subject == subject
    found = confluent.get_associations_by_resource_name(topic, "-", "topic", ["value"])
    assert [each.subject for each in found] == [subject]
    confluent.delete_associations(f"{topic}-id")
    assert confluent.get_associations_by_resource_name(topic, "-", "topic") == []


def test_import_mode_takes_ids_as_given(confluent: SchemaRegistryClient, subject: str) -> None:
    context = f":.{subject.replace('_', '-')}-import:{subject}"
    confluent.update_mode(context, "IMPORT")
    rest = confluent._rest_client
    answer = rest.post(f"subjects/{context.replace(':', '%3A')}/versions", {"schema": FIRST, "id": 4711, "version": 7})
    assert answer["id"] == 4711
    assert confluent.get_versions(context) == [7]
    with pytest.raises(SchemaRegistryError) as caught:
        rest.post(f"subjects/{context.replace(':', '%3A')}/versions", {"schema": SECOND, "id": 4711})
    assert code_of(caught) == 42207
