"""The bytes of `_schemas`, and what they add up to: keys in Confluent's order, ids and versions without gaps."""

import json
from typing import Any

import pytest

from ottla.registry import decisions, records
from ottla.registry.content import Content, Reference, read_content
from ottla.registry.decisions import Registration
from ottla.registry.errors import Code, RegistryError
from ottla.registry.records import RegistryRecord, read_record
from ottla.registry.state import LATEST, RegistryState
from ottla.registry.subjects import check_subject, in_context, parse_subject


def register(state: RegistryState, subject: str, text: str, **more: Any) -> tuple[int, int]:
    made = decisions.register(state, Registration(subject, Content(text), **more), [], now_ms=5)
    replay(state, made.records)
    return made.version.schema_id, made.version.version


def replay(state: RegistryState, written: list[RegistryRecord]) -> None:
    """By way of bytes, as it comes from the topic."""
    for each in written:
        found = read_record(each.key_bytes(), each.value_bytes())
        assert found is not None
        state.replay(found, 5)
    assert state.unread == 0


def refusal(*call: Any, **more: Any) -> int:
    with pytest.raises(RegistryError) as caught:
        call[0](*call[1:], **more)
    return caught.value.code


def test_keys_and_values_are_confluents() -> None:
    content = Content('"string"')
    record = records.schema_record("a-value", 1, 7, content, deleted=False)
    assert record.key_bytes() == b'{"keytype":"SCHEMA","subject":"a-value","version":1,"magic":1}'
    value = json.loads(record.value_bytes() or b"")
    assert list(value) == ["subject", "version", "id", "md5", "schema", "deleted"]
    assert records.NOOP_RECORD.key_bytes() == b'{"keytype":"NOOP","magic":0}'
    assert records.config_record(None, {"compatibilityLevel": "FULL"}).key_bytes() == (
        b'{"keytype":"CONFIG","subject":null,"magic":0}'
    )
    assert records.mode_record("a", "READONLY").key_bytes() == b'{"keytype":"MODE","subject":"a","magic":0}'
    assert records.delete_subject_record("a", 3).value_bytes() == b'{"subject":"a","version":3}'


def test_a_topic_of_confluents_is_taken_over() -> None:
    lines = [
        ('{"keytype":"NOOP","magic":0}', None),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        (
            '{"keytype":"SCHEMA","subject":"o-value","version":1,"magic":1}',
            '{"subject":"o-value","version":1,"id":3,"md5":"xx==","schema":"\\"int\\"","deleted":false}',
        ),
        (
            '{"keytype":"SCHEMA","subject":"o-value","version":2,"magic":1}',
            '{"subject":"o-value","version":2,"id":4,"schemaType":"JSON","schema":"{}","deleted":false}',
        ),
        ('{"keytype":"DELETE_SUBJECT","subject":"o-value","magic":0}', '{"subject":"o-value","version":1}'),
        ('{"keytype":"SOMETHING_NEW","magic":0}', "{}"),
    ]
    state = RegistryState()
    for key, value in lines:
        found = read_record(key.encode(), None if value is None else value.encode())
        assert found is not None
        state.replay(found, 1)
    assert state.config("o-value") == {"compatibilityLevel": "FULL"}
    assert [(each.version, each.deleted) for each in state.versions("o-value", deleted=True)] == [(1, True), (2, False)]
    assert state.next_id(".") == 5
    assert state.unread == 1


def test_ids_and_versions() -> None:
    state = RegistryState()
    assert register(state, "a", '"int"') == (1, 1)
    assert register(state, "a", '"int"') == (1, 1)
    assert register(state, "a", '"long"') == (2, 2)
    assert register(state, "b", '"long"') == (2, 1), "one id for one text"
    assert register(state, ":.c:a", '"long"') == (1, 1), "ids count per context"
    assert state.contexts() == [".", ".c"]
    replay(state, decisions.delete_version(state, "a", 2, permanent=False)[1])
    assert register(state, "a", '"long"') == (2, 3), "same id, next version"


def test_deletes() -> None:
    state = RegistryState()
    register(state, "a", '"int"')
    register(state, "a", '"long"')
    assert refusal(decisions.delete_version, state, "a", 9, permanent=False) == Code.VERSION_NOT_FOUND
    assert refusal(decisions.delete_subject, state, "x", permanent=False) == Code.SUBJECT_NOT_FOUND
    assert refusal(decisions.delete_subject, state, "a", permanent=True) == Code.SUBJECT_NOT_SOFT_DELETED
    assert refusal(decisions.delete_version, state, "a", 1, permanent=True) == Code.VERSION_NOT_SOFT_DELETED
    numbers, written = decisions.delete_subject(state, "a", permanent=False)
    replay(state, written)
    assert numbers == [1, 2]
    assert state.version("a", LATEST) is None
    assert state.content(".", 1) is not None, "ids still resolve"
    assert refusal(decisions.delete_subject, state, "a", permanent=False) == Code.SUBJECT_SOFT_DELETED
    assert refusal(decisions.delete_version, state, "a", 1, permanent=False) == Code.VERSION_SOFT_DELETED
    replay(state, decisions.delete_subject(state, "a", permanent=True)[1])
    assert state.subjects == {}
    assert state.content(".", 1) is None
    assert register(state, "a", '"int"') == (3, 1), "an id is not given again"


def test_references_hold_what_they_name() -> None:
    state = RegistryState()
    register(state, "inner", '{"type":"enum","name":"E","symbols":["x"]}')
    content = Content('{"type":"array","items":"E"}', references=(Reference("E", "inner", 1),))
    made = decisions.register(state, Registration("outer", content), [], 5)
    replay(state, made.records)
    assert [each.name for each in decisions.resolve_references(state, content, ".")] == ["E"]
    assert refusal(decisions.delete_subject, state, "inner", permanent=False) == Code.REFERENCE_EXISTS
    lost = Content('"int"', references=(Reference("E", "nowhere", 1),))
    assert refusal(decisions.resolve_references, state, lost, ".") == Code.INVALID_SCHEMA


def test_modes() -> None:
    state = RegistryState()
    register(state, "a", '"int"')
    assert refusal(decisions.set_mode, state, "a", "NONSENSE", force=False) == Code.INVALID_MODE
    assert refusal(decisions.set_mode, state, "a", "IMPORT", force=False) == Code.NOT_PERMITTED
    replay(state, [decisions.set_mode(state, "a", "READONLY", force=False)[1]])
    assert refusal(decisions.check_may_write, state, "a") == Code.NOT_PERMITTED
    replay(state, [decisions.set_mode(state, "a", "IMPORT", force=True)[1]])
    assert refusal(register, state, "a", '"long"') == Code.NOT_PERMITTED
    assert register(state, "a", '"long"', schema_id=77, version=9) == (77, 9)
    assert refusal(register, state, "a", '"bytes"', schema_id=77) == Code.ID_TAKEN
    replay(state, decisions.delete_mode(state, "a", recursive=False)[1])
    assert refusal(register, state, "a", '"bytes"', schema_id=99) == Code.NOT_PERMITTED
    assert refusal(decisions.delete_mode, state, "a", recursive=False) == Code.MODE_NOT_FOUND
    assert state.next_id(".") == 78


def test_configs() -> None:
    state = RegistryState()
    assert refusal(decisions.set_config, state, "a", {"compatibility": "SOMEWHAT"}) == Code.INVALID_LEVEL
    assert refusal(decisions.delete_config, state, "a") == Code.CONFIG_NOT_FOUND
    replay(state, [decisions.set_config(state, "", {"compatibility": "full"})[1]])
    replay(state, [decisions.set_config(state, "a", {"compatibilityGroup": "major"})[1]])
    replay(
        state, [decisions.set_config(state, "a", {"normalize": True, "defaultMetadata": {"properties": {"x": "1"}}})[1]]
    )
    assert state.config("a") == {
        "compatibilityLevel": "FULL",
        "compatibilityGroup": "major",
        "normalize": True,
        "defaultMetadata": {"properties": {"x": "1"}},
    }
    completed = decisions.completed(state, "a", Content('"int"'))
    assert completed.metadata == {"properties": {"x": "1"}}


def test_groups_compare_only_their_own() -> None:
    state = RegistryState()
    replay(state, [decisions.set_config(state, "a", {"compatibilityGroup": "major"})[1]])
    for number, text in enumerate(['"int"', '"string"'], 1):
        content = Content(text, metadata={"properties": {"major": str(number)}})
        replay(state, decisions.register(state, Registration("a", content), [], 5).records)
    wanted = Content('"long"', metadata={"properties": {"major": "1"}})
    assert [each.version for each in decisions.compared_with(state, "a", wanted)] == [1]


def test_metadata_and_rules_tell_contents_apart() -> None:
    plain = read_content({"schema": '"int"'})
    empty = read_content({"schema": '"int"', "metadata": {}})
    tagged = read_content({"schema": '"int"', "metadata": {"properties": {"a": "b"}}})
    assert len({plain.guid, empty.guid, tagged.guid}) == 3
    bad: list[dict[str, Any]] = [
        {"schema": 5},
        {"schema": "x", "schemaType": "XML"},
        {"schema": "x", "references": [{"name": "a"}]},
        {"schema": "x", "metadata": []},
    ]
    for document in bad:
        assert refusal(read_content, document) == Code.INVALID_SCHEMA
    rules: list[Any] = [
        {"domainRules": [{"name": "1"}]},
        {"migrationRules": [{"name": "a", "type": "X", "mode": "READ"}]},
    ]
    for rule_set in rules:
        assert refusal(read_content, {"schema": "x", "ruleSet": rule_set}) == Code.INVALID_RULES


def test_subjects() -> None:
    assert str(parse_subject(":.:a")) == "a"
    assert in_context(".team", "a") == ":.team:a"
    assert in_context(".team", ":.other:a") == ":.other:a"
    for name in ("", "a\x00b", "__GLOBAL", "x" * 5000):
        assert refusal(check_subject, name) == Code.INVALID_SUBJECT
