"""Requests that every registry with Confluent's API is asked, story by story; test_apicurio.py compares the answers.

STORY stands for the name of the story, so that stories keep apart; {name} in a path for the id that was given under it.
"""

import json
from typing import Any, NamedTuple


class Ask(NamedTuple):
    what: str
    """In words; no other request of its story has the same."""
    method: str
    path: str
    body: dict[str, Any] | None = None
    saves: str = ""
    """What the id in the answer is called from then on."""


def record(*fields: dict[str, Any], name: str = "STORY") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def schema(text: str, schema_type: str = "", **more: Any) -> dict[str, Any]:
    return {"schema": text, **({"schemaType": schema_type} if schema_type else {}), **more}


ID = {"name": "id", "type": "int"}
FIRST = schema(record(ID))
NOTED_ONE = {"name": "id", "type": "int", "z": "1", "b": "2"}
NOTED_TWO = {"name": "id", "type": "int", "b": "2", "z": "1"}
SECOND = schema(record(ID, {"name": "note", "type": "string", "default": ""}))
WRONG = schema(record({"name": "id", "type": "string"}))
BROKEN = schema("{")
ITEM = schema(record(ID, name="shop.STORY"))
REFERENCE = {"name": "shop.STORY", "subject": "STORY-item", "version": 1}
BASKET = schema(record({"name": "item", "type": "shop.STORY"}, name="Basket"))
JSON_SCHEMA = schema('{"title": "STORY", "type": "object", "properties": {"a": {"type": "integer"}}}', "JSON")
PROTO = schema('syntax = "proto3";\npackage STORY;\nmessage M {\n  int32 a = 1;\n}\n', "PROTOBUF")
SUBJECT = "/subjects/STORY-value"
VERSIONS = f"{SUBJECT}/versions"
CHECK = f"/compatibility{VERSIONS}"
CONFIG = "/config/STORY-value"
MODE = "/mode/STORY-value"
REGISTER_FIRST = Ask("the first version", "POST", VERSIONS, FIRST, "first")
REGISTER_SECOND = Ask("the second version", "POST", VERSIONS, SECOND, "second")

READING = (
    Ask("versions of no subject", "GET", VERSIONS),
    Ask("a version of no subject", "GET", f"{VERSIONS}/1"),
    Ask("the latest of no subject", "GET", f"{VERSIONS}/latest"),
    Ask("looked up in no subject", "POST", SUBJECT, FIRST),
    Ask("an id that nobody was given", "GET", "/schemas/ids/123456"),
    REGISTER_FIRST,
    Ask("the first version again", "POST", VERSIONS, FIRST),
    REGISTER_SECOND,
    Ask("the first in another subject", "POST", "/subjects/STORY-other/versions", FIRST),
    Ask("subjects", "GET", "/subjects"),
    Ask("subjects by prefix", "GET", "/subjects?subjectPrefix=STORY-v"),
    Ask("versions", "GET", VERSIONS),
    Ask("version 1", "GET", f"{VERSIONS}/1"),
    Ask("the latest version", "GET", f"{VERSIONS}/latest"),
    Ask("version -1", "GET", f"{VERSIONS}/-1"),
    Ask("a version that is not there", "GET", f"{VERSIONS}/9"),
    Ask("version 0", "GET", f"{VERSIONS}/0"),
    Ask("a version that is no number", "GET", f"{VERSIONS}/x"),
    Ask("the text of a version", "GET", f"{VERSIONS}/1/schema"),
    Ask("by id", "GET", "/schemas/ids/{first}"),
    Ask("by id, with the highest", "GET", "/schemas/ids/{first}?fetchMaxId=true"),
    Ask("the text by id", "GET", "/schemas/ids/{second}/schema"),
    Ask("subjects of an id", "GET", "/schemas/ids/{first}/subjects"),
    Ask("versions of an id", "GET", "/schemas/ids/{first}/versions"),
    Ask("subjects of no id", "GET", "/schemas/ids/123456/subjects"),
    Ask("looked up", "POST", SUBJECT, SECOND),
    Ask("looked up, not there", "POST", SUBJECT, WRONG),
    Ask("types", "GET", "/schemas/types"),
    Ask("contexts", "GET", "/contexts"),
    Ask("no such path", "GET", "/nowhere"),
    Ask("no such method", "PUT", "/subjects"),
)

REFUSING = (
    REGISTER_FIRST,
    Ask("no JSON", "POST", VERSIONS, BROKEN),
    Ask("no type of Avro", "POST", VERSIONS, schema('{"type":"nonsense"}')),
    Ask("a field without a name", "POST", VERSIONS, schema(record({"type": "int"}))),
    Ask("nothing", "POST", VERSIONS, {}),
    Ask("a type that nobody knows", "POST", VERSIONS, schema(record(ID), "XML")),
    Ask("no JSON Schema", "POST", "/subjects/STORY-json/versions", schema("{", "JSON")),
    Ask("no .proto", "POST", "/subjects/STORY-proto/versions", schema("message", "PROTOBUF")),
    Ask("incompatible", "POST", VERSIONS, WRONG),
    Ask("incompatible, checked", "POST", f"{CHECK}/latest", WRONG),
    Ask("compatible, checked", "POST", f"{CHECK}/latest", SECOND),
    Ask("compatible with all, checked", "POST", CHECK, SECOND),
    Ask("checked with no version", "POST", f"{CHECK}/9", SECOND),
    Ask("checked with no subject", "POST", "/compatibility/subjects/STORY-none/versions/latest", FIRST),
    Ask("checked with all of no subject", "POST", "/compatibility/subjects/STORY-none/versions", FIRST),
    Ask("checked, no JSON", "POST", f"{CHECK}/latest", BROKEN),
)

SETTING = (
    Ask("config of a subject without", "GET", CONFIG),
    Ask("config of a subject without, or all's", "GET", f"{CONFIG}?defaultToGlobal=true"),
    REGISTER_FIRST,
    Ask("no level", "PUT", CONFIG, {"compatibility": "SOMETIMES"}),
    Ask("level NONE", "PUT", CONFIG, {"compatibility": "NONE"}),
    Ask("config of a subject", "GET", CONFIG),
    Ask("incompatible, with NONE", "POST", VERSIONS, WRONG, "wrong"),
    Ask("config deleted", "DELETE", CONFIG),
    Ask("config deleted again", "DELETE", CONFIG),
    Ask("mode of all", "GET", "/mode"),
    Ask("mode of a subject without", "GET", MODE),
    Ask("mode of a subject without, or all's", "GET", f"{MODE}?defaultToGlobal=true"),
    Ask("no mode", "PUT", MODE, {"mode": "SOMETIMES"}),
    Ask("mode READONLY", "PUT", MODE, {"mode": "READONLY"}),
    Ask("mode of a subject", "GET", MODE),
    Ask("registered though READONLY", "POST", VERSIONS, SECOND, "second"),
    Ask("mode deleted", "DELETE", MODE),
)

REFERRING = (
    Ask("what is referred to", "POST", "/subjects/STORY-item/versions", ITEM, "item"),
    Ask("what refers", "POST", VERSIONS, {**BASKET, "references": [REFERENCE]}, "basket"),
    Ask("a version that refers", "GET", f"{VERSIONS}/1"),
    Ask("an id that refers", "GET", "/schemas/ids/{basket}"),
    Ask("who refers", "GET", "/subjects/STORY-item/versions/1/referencedby"),
    Ask("who refers to what nobody does", "GET", f"{VERSIONS}/1/referencedby"),
    Ask("looked up with references", "POST", SUBJECT, {**BASKET, "references": [REFERENCE]}),
    Ask("referred version deleted", "DELETE", "/subjects/STORY-item/versions/1"),
    Ask("referred subject deleted", "DELETE", "/subjects/STORY-item"),
    Ask("without its references", "POST", "/subjects/STORY-alone/versions", BASKET),
    Ask("refers to no version", "POST", VERSIONS, {**BASKET, "references": [{**REFERENCE, "version": 7}]}),
    Ask("JSON Schema", "POST", "/subjects/STORY-json/versions", JSON_SCHEMA, "json"),
    Ask("a version of JSON Schema", "GET", "/subjects/STORY-json/versions/1"),
    Ask("Protobuf", "POST", "/subjects/STORY-proto/versions", PROTO, "proto"),
    Ask("a version of Protobuf", "GET", "/subjects/STORY-proto/versions/1"),
    Ask("another type in a subject", "POST", "/subjects/STORY-json/versions", FIRST),
)

DELETING = (
    REGISTER_FIRST,
    REGISTER_SECOND,
    Ask("a version for good, at once", "DELETE", f"{VERSIONS}/1?permanent=true"),
    Ask("a version", "DELETE", f"{VERSIONS}/1"),
    Ask("a version again", "DELETE", f"{VERSIONS}/1"),
    Ask("a version that is not there", "DELETE", f"{VERSIONS}/9"),
    Ask("versions", "GET", VERSIONS),
    Ask("versions with deleted", "GET", f"{VERSIONS}?deleted=true"),
    Ask("versions, deleted only", "GET", f"{VERSIONS}?deletedOnly=true"),
    Ask("a deleted version", "GET", f"{VERSIONS}/1"),
    Ask("a deleted version, with deleted", "GET", f"{VERSIONS}/1?deleted=true"),
    Ask("a deleted schema by id", "GET", "/schemas/ids/{first}"),
    Ask("a deleted schema looked up", "POST", SUBJECT, FIRST),
    Ask("a deleted schema looked up, with deleted", "POST", f"{SUBJECT}?deleted=true", FIRST),
    Ask("a version for good", "DELETE", f"{VERSIONS}/1?permanent=true"),
    Ask("a subject for good, at once", "DELETE", f"{SUBJECT}?permanent=true"),
    Ask("a subject", "DELETE", SUBJECT),
    Ask("a subject again", "DELETE", SUBJECT),
    Ask("versions of a deleted subject", "GET", VERSIONS),
    Ask("subjects", "GET", "/subjects"),
    Ask("subjects with deleted", "GET", "/subjects?deleted=true"),
    Ask("registered again", "POST", VERSIONS, SECOND),
    Ask("the number goes on", "GET", f"{VERSIONS}/latest"),
    Ask("a subject that was deleted before", "DELETE", SUBJECT),
    Ask("a subject for good", "DELETE", f"{SUBJECT}?permanent=true"),
    Ask("subjects at the end", "GET", "/subjects?deleted=true"),
    Ask("no subject", "DELETE", "/subjects/STORY-none"),
)

METADATA = {"properties": {"owner": "shop", "major": "1"}}
ENRICHING = (
    Ask("with metadata", "POST", VERSIONS, {**FIRST, "metadata": METADATA}, "first"),
    Ask("a version with metadata", "GET", f"{VERSIONS}/1"),
    Ask("by metadata", "GET", f"{SUBJECT}/metadata?key=owner&value=shop"),
    Ask("by metadata that nobody has", "GET", f"{SUBJECT}/metadata?key=owner&value=none"),
    Ask("written otherwise", "POST", "/subjects/STORY-n/versions", schema(record(NOTED_ONE)), "one"),
    Ask("normalised", "POST", "/subjects/STORY-n/versions?normalize=true", schema(record(NOTED_TWO)), "two"),
    Ask("all schemas, the latest", "GET", "/schemas?subjectPrefix=STORY-n&latestOnly=true"),
    Ask("resolved", "GET", "/schemas/ids/{first}?format=resolved"),
    Ask("in a context", "POST", "/subjects/:.STORY:value/versions", FIRST, "in a context"),
    Ask("in a context, by path", "GET", "/contexts/.STORY/subjects/value/versions"),
)

STORIES = {
    "reading": READING,
    "refusing": REFUSING,
    "setting": SETTING,
    "referring": REFERRING,
    "deleting": DELETING,
    "enriching": ENRICHING,
}
