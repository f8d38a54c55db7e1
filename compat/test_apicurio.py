"""The same requests to our registry and to Apicurio's API of the same form: status, error code and body are compared.

Apicurio keeps its state in topics of our broker. Words of messages are everybody's own; ids are compared by what they
were given for. What is answered otherwise is listed with the reason, and the list is held to be true on both sides.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from compat.peer.apicurio import apicurio, in_topics
from compat.registry_changes import CHANGES, LEVELS, Change
from compat.registry_requests import STORIES, Ask

from ottla.testing.registry import registry
from ottla.testing.running import RunningBroker

SECONDS_MAX = 120.0
HEADERS = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
ONLY_OURS = {
    "guid": "theirs has ids only",
    "ts": "theirs does not tell it",
    "deleted": "theirs does not tell it",
    "maxId": "theirs leaves fetchMaxId alone",
    "metadata": "theirs takes it and does not give it back",
}
ONLY_THEIRS = {"normalize": "false stands in every answer of theirs, where Confluent's leaves out what was not set"}


class Known(NamedTuple):
    ours: str
    theirs: str
    why: str


FILTER = "theirs leaves subjectPrefix alone"
NUMBERS = "Confluent's tells what is no version from a version that is not there"
OWN_CODE = "the code's first three digits are the status, as with Confluent's"
BEFORE_8 = "409 was the code before version 8 of the API, 40901 since"
UNSET = "theirs has no difference between a setting that is not there and the one of all subjects"
NO_METADATA = "theirs does not look by metadata"
PLAIN = '{"fields": [{"name": "id", "type": "int"}], "name": "enriching", "type": "record"}'
NOTED = '{"fields": [{"b": "2", "name": "id", "type": "int", "z": "1"}], "name": "enriching", "type": "record"}'
DIFFERENT = {
    ("reading", "subjects by prefix"): Known('200 ["reading-value"]', '200 ["reading-other", "reading-value"]', FILTER),
    ("reading", "version 0"): Known("422 42202", "404 40402", NUMBERS),
    ("reading", "a version that is no number"): Known("422 42202", "404 40402", NUMBERS),
    ("reading", "contexts"): Known('200 ["."]', '200 [":.:"]', "theirs gives the default context a name of its own"),
    ("reading", "no such path"): Known("404 404", '404 ""', "every error of Confluent's has a code"),
    ("reading", "no such method"): Known("405 405", '405 ""', "every error of Confluent's has a code"),
    ("refusing", "nothing"): Known("422 42201", "500 0", "theirs fails at it"),
    ("refusing", "a type that nobody knows"): Known("422 42201", '200 {"id": "first"}', "theirs guesses the type"),
    ("refusing", "incompatible"): Known("409 40901", "409 409", BEFORE_8),
    ("refusing", "checked with all of no subject"): Known(
        '200 {"is_compatible": true}', "404 40401", "with Confluent's everything fits a subject that has nothing"
    ),
    ("setting", "config of a subject without"): Known("404 40408", "404 40401", "theirs looks for the subject first"),
    ("setting", "config of a subject without, or all's"): Known(
        '200 {"compatibilityLevel": "BACKWARD"}', "404 40401", "theirs looks for the subject first"
    ),
    ("setting", "config deleted again"): Known("404 40408", '200 {"compatibilityLevel": "NONE"}', UNSET),
    ("setting", "mode of a subject without"): Known("404 40409", '200 {"mode": "READWRITE"}', UNSET),
    ("setting", "no mode"): Known("422 42204", "422 42201", "42204 is the code of a mode that nobody knows"),
    ("setting", "registered though READONLY"): Known(
        "422 42205", '200 {"id": "second"}', "theirs keeps the mode of a subject and does not heed it"
    ),
    ("referring", "another type in a subject"): Known(
        "409 40901", "422 42201", "Confluent's takes another type for an incompatible schema"
    ),
    ("deleting", "a version for good, at once"): Known("404 40407", "409 40407", OWN_CODE),
    ("deleting", "a version again"): Known("404 40406", "409 40406", OWN_CODE),
    ("deleting", "a subject for good, at once"): Known("404 40405", "409 40405", OWN_CODE),
    ("deleting", "a subject that was deleted before"): Known(
        "200 [3]", "200 [2, 3]", "Confluent's names the versions that go now, not those that had gone"
    ),
    ("enriching", "by metadata"): Known(
        '200 {"id": "first", "schema": ' + PLAIN + ', "subject": "enriching-value", "version": 1}',
        '204 ""',
        NO_METADATA,
    ),
    ("enriching", "by metadata that nobody has"): Known("404 40403", '204 ""', NO_METADATA),
    ("enriching", "all schemas, the latest"): Known(
        '200 [{"id": "two", "schema": ' + NOTED + ', "subject": "enriching-n", "version": 2}]',
        '200 [{"schema": ' + NOTED + '}, {"schema": ' + NOTED + "}]",
        "theirs gives every version, and of each only the text",
    ),
    ("enriching", "in a context, by path"): Known("200 [1]", '404 ""', "theirs knows contexts in names only"),
}
"""By story and request."""
STRICTER = Known("200 True", "200 False", "Confluent's goes by number and by what is the same on the wire")
BY_NUMBER = ("a field renamed", "another number", "int32 to int64", "string to bytes")
JUDGED_OTHERWISE = {
    **{("PROTOBUF", what, level): STRICTER for what in BY_NUMBER for level in LEVELS},
    ("PROTOBUF", "a field more", "FORWARD"): STRICTER,
    ("PROTOBUF", "a field less", "BACKWARD"): STRICTER,
    ("PROTOBUF", "two into a oneof", "BACKWARD"): Known(
        "200 False", "200 True", "of two fields that were both written, a oneof keeps one"
    ),
}
"""By type, change and level."""


class Peer:
    """A registry, and what its ids were given for."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._names: dict[int, str] = {}

    def ask(self, story: str, ask: Ask) -> str:
        """What it answers, in one line, without what is each registry's own."""
        path = ask.path.replace("STORY", story).format_map({name: each for each, name in self._names.items()})
        body = None if ask.body is None else json.dumps(ask.body).replace("STORY", story)
        status, answer = self.send(ask.method, path, body)
        if ask.saves and isinstance(answer, dict) and "id" in answer:
            self._names[answer["id"]] = ask.saves
        if path.endswith("/referencedby") and isinstance(answer, list):
            return f"{status} {[self._names.get(each, each) for each in answer]}"
        return f"{status} {self._told(answer, story)}"

    def send(self, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
        data = None if body is None else body.encode()
        request = urllib.request.Request(f"{self._url}{path}", data=data, method=method, headers=HEADERS)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def _told(self, answer: Any, story: str) -> str:
        if isinstance(answer, dict) and "error_code" in answer:
            return str(answer["error_code"])
        if isinstance(answer, list) and all(isinstance(each, str) for each in answer):
            # Of the subjects, those of this story; no list of names has an order.
            own = [each for each in answer if story in each or "-" not in each]
            return json.dumps(sorted(own))
        return json.dumps(self._named(answer), sort_keys=True)

    def _named(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return [self._named(each) for each in answer]
        if not isinstance(answer, dict):
            return answer
        kept = {name: value for name, value in answer.items() if name not in ONLY_OURS and name not in ONLY_THEIRS}
        if kept.get("references") == []:
            del kept["references"]  # theirs names them even where there are none
        if "id" in kept:
            kept["id"] = self._names.get(kept["id"], kept["id"])
        if kept.get("schema", "").startswith("{"):
            kept["schema"] = json.loads(kept["schema"])  # with or without white space: it is the same schema
        return kept


class Pair(NamedTuple):
    ours: Peer
    theirs: Peer


@pytest.fixture(scope="module")
def pair(ottla_broker: RunningBroker) -> Iterator[Pair]:
    with (
        registry(ottla_broker.bootstrap) as ours,
        apicurio(in_topics(ottla_broker.bootstrap, "apicurio")) as theirs,
    ):
        both = Pair(Peer(ours.url), Peer(theirs.url))
        for each in both:
            # Theirs begins with NONE, Confluent's and ours with BACKWARD.
            status, _ = each.send("PUT", "/config", '{"compatibility": "BACKWARD"}')
            assert status == 200
        yield both


@pytest.mark.parametrize("story", STORIES)
def test_answers(pair: Pair, story: str) -> None:
    wrong = []
    for ask in STORIES[story]:
        ours, theirs = pair.ours.ask(story, ask), pair.theirs.ask(story, ask)
        known = DIFFERENT.get((story, ask.what))
        expected = (known.ours, known.theirs) if known else (ours, ours)
        if (ours, theirs) != expected:
            wrong.append(f"{ask.what}: {ask.method} {ask.path}\n  ours   {ours}\n  theirs {theirs}\n  listed {known}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("schema_type", sorted({change.schema_type for change in CHANGES}))
def test_judgements(pair: Pair, schema_type: str) -> None:
    wrong = []
    for number, change in enumerate(each for each in CHANGES if each.schema_type == schema_type):
        subject = f"judged-{schema_type.lower()}-{number}"
        for each in pair:
            status, answer = each.send("POST", f"/subjects/{subject}/versions", _body(change, change.old))
            assert status == 200, (change.what, answer)
        for level in LEVELS:
            ours, theirs = (_judgement(each, subject, level, change) for each in pair)
            known = JUDGED_OTHERWISE.get((schema_type, change.what, level))
            expected = (known.ours, known.theirs) if known else (ours, ours)
            if (ours, theirs) != expected:
                wrong.append(f"{change.what}, {level}: ours {ours}, theirs {theirs}, listed {known}")
    assert not wrong, "\n".join(wrong)


def _judgement(peer: Peer, subject: str, level: str, change: Change) -> str:
    status, _ = peer.send("PUT", f"/config/{subject}", json.dumps({"compatibility": level}))
    assert status == 200
    status, answer = peer.send("POST", f"/compatibility/subjects/{subject}/versions/latest", _body(change, change.new))
    return f"{status} {answer.get('is_compatible', answer.get('error_code'))}"


def _body(change: Change, text: str) -> str:
    return json.dumps({"schema": text, "schemaType": change.schema_type})
