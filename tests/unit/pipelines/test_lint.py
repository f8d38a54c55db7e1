"""Every problem of a file at once, each with its place and, where one can guess, what was meant."""

import copy
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.pipelines.samples import EVERYTHING, ISSUE, SMALL, checked, small

from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.lint import check_file, find_problems
from ottla.pipelines.loading import Document
from ottla.pipelines.plan import describe, make_plan, tree_lines


def problems(values: Any) -> list[str]:
    with pytest.raises(InvalidPipeline) as raised:
        checked(values)
    return raised.value.problems


def test_the_file_of_the_issue_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(ISSUE)
    found = check_file(path)
    assert found.name == "orders-enriched"
    assert [step.label for step in found.phases[0].steps] == ["1 sql", "2 python", "3 expect"]


def test_all_problems_are_found_at_once_with_lines_and_hints(tmp_path: Path) -> None:
    path = tmp_path / "orders.yaml"
    path.write_text(
        "name: orders\n"
        "source: {a: {topic: b}}\n"
        "sources:\n"
        "  orders: {topic: orders, format: jsn, strat: earliest}\n"
        "sinks:\n"
        "  - {topi: out}\n"
        "  - {topic: out, kye: id}\n"
        "steps:\n"
        "  - {sequel: SELECT 1}\n"
        "errors: {retries: three, dead_leter: x}\n"
    )
    with pytest.raises(InvalidPipeline) as raised:
        check_file(path)
    text = "\n".join(raised.value.problems)
    for expected in (
        "line 2, source: a pipeline has no key `source`: did you mean `sources`?",
        "line 4, sources.orders.strat: source `topic` has no key `strat`: did you mean `start`?",
        "line 4, sources.orders.format: there is no format `jsn`",
        "line 6, sinks[0]: there is no sink `topi`: did you mean `topic`?",
        "line 7, sinks[1].kye: sink `topic` has no key `kye`: did you mean `key`?",
        "line 9, steps[0]",
        "line 10, errors.dead_leter: `errors` has no key `dead_leter`: did you mean `dead_letter`?",
        "line 10, errors.retries: wants a whole number, not text",
    ):
        assert expected in text, text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"name": "a b"}, "name: wants letters"),
        ({"sources": {}}, "sources: there is none"),
        ({"sinks": []}, "sinks: there is none"),
        ({"limits": {"trigger": "1 secnd"}}, "limits.trigger: `1 secnd` is not a duration"),
        ({"limits": {"max_records": 0}}, "limits.max_records: wants at least 1"),
        ({"errors": {"retries": -1}}, "errors.retries: wants 0 or more"),
        ({"errors": {"dead_letter": "a b"}}, "errors.dead_letter: topic name 'a b'"),
        ({"errors": {"restart": "sometimes"}}, "errors.restart"),
        ({"sinks": [{"topic": "out", "from": "nobody"}]}, "sinks[0].from: nothing is called `nobody`"),
        ({"sinks": [{"topic": "out", "name": "a"}, {"topic": "b", "name": "a"}]}, "there is a sink `a` already"),
        ({"steps": [{"filter": "1 = 1", "from": "later"}]}, "steps[0].from: nothing before it is called `later`"),
        ({"steps": [{"sql": "SELECT 1", "as": "orders"}]}, "steps[0].as: `orders` has that name already"),
        ({"steps": [{"sql": "SELECT 1", "as": "a-b"}]}, "cannot be a table in SQL"),
        ({"steps": [{"sql": "SELECT 1", "as": "input"}]}, "choose another name"),
        ({"steps": [{"expect": {"rule": "1 = 1"}, "rule": "x"}]}, "stands beside `expect` instead of in it"),
        ({"tests": [{"given": {"nope": "x"}, "expect": "y"}]}, "tests[0].given.nope: there is no source"),
        ({"tests": [{"given": {"orders": "x"}}]}, "tests[0]: expects nothing"),
        ({"sinks": [{"topic": "a"}, {"topic": "b", "delivery": "at_least_once"}]}, "share one `delivery`"),
        ({"client": {"sasl.pasword": "x"}}, "client.sasl.pasword: the client has no setting"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(change: dict[str, Any], expected: str) -> None:
    found = problems(small(**change))
    assert any(expected in problem for problem in found), found


def test_a_source_that_nothing_reads_is_a_mistake() -> None:
    two = {**SMALL["sources"], "other": {"topic": "other"}}
    assert problems(small(sources=two)) == ["sources.other: nothing reads it: name it in a SQL step, or in `from`"]


def test_phases_and_a_top_level_phase_exclude_each_other() -> None:
    phase = {"name": "one", "sources": SMALL["sources"], "sinks": SMALL["sinks"]}
    found = problems(small(phases=[phase, phase]))
    assert any("stand inside the phases" in problem for problem in found)
    assert any("there is a phase `one` already" in problem for problem in found)


# Any mutation of a valid file gives InvalidPipeline or a plan, never another exception.

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
    | st.sampled_from(["orders", "input", "${env:X}", "${nope}", "1 second", "/a(/", "earliest", "json"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
_KEYS = st.sampled_from(
    ["topic", "files", "sql", "expect", "as", "from", "name", "format", "schema", "keep", "key", "start", "phases"]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += _places(item, (*path, number))
    return found


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    values: Any = copy.deepcopy(draw(st.sampled_from([SMALL, EVERYTHING])))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(_places(values)))
        if not path:
            return draw(_VALUES)
        holder: Any = values
        for key in path[:-1]:
            holder = holder[key]
        change = draw(st.sampled_from(["replace", "remove", "add"]))
        if change == "replace":
            holder[path[-1]] = draw(_VALUES)
        elif change == "remove":
            del holder[path[-1]]
        elif isinstance(holder, dict):
            holder[draw(_KEYS | st.text(max_size=6))] = draw(_VALUES)
        else:
            holder.append(draw(_VALUES))
    return values


@settings(max_examples=400, deadline=None)
@given(mutated())
def test_any_mutation_of_a_file_is_refused_in_words_or_planned(values: Any) -> None:
    wrong: list[str] = []
    try:
        plan = make_plan(checked(values))
    except InvalidPipeline as error:
        wrong = error.problems
    else:
        assert describe(plan)
        assert list(tree_lines(plan))
        return
    assert wrong
    assert all(problem.strip() for problem in wrong)


AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'


def protobuf(message: str) -> dict[str, Any]:
    return {"format": "protobuf", "schema": "shop.desc", "format_options": {"message": message}}


def descriptor_set() -> bytes:
    found = descriptor_pb2.FileDescriptorSet()
    file = found.file.add(name="shop.proto", package="shop", syntax="proto3")
    file.message_type.add(name="Order").field.add(name="id", number=1, type=9, label=1)
    return found.SerializeToString()


@pytest.mark.parametrize(
    ("entry", "content", "expected"),
    [
        ({"format": "avro", "schema": "order.avsc"}, AVRO.encode(), None),
        ({"format": "avro", "schema": "order.avsc"}, None, "cannot read the schema file"),
        ({"format": "avro", "schema": "order.avsc"}, b"{oops", "the schema is not JSON"),
        ({"format": "avro", "schema": "order.avsc"}, b"\xff", "cannot read the schema file"),
        ({"format": "avro", "schema": "order.avsc"}, b'{"type": "record", "fields": ["x"]}', "no Avro schema"),
        ({"format": "avro", "schema": "order.avsc"}, b'"string"', "the schema must be a record"),
        (protobuf("shop.Order"), descriptor_set(), None),
        (protobuf("shop.Nope"), descriptor_set(), "shop.Nope"),
        (protobuf("shop.Order"), b"\xff\xff", "no descriptor set"),
        (protobuf("shop.Order"), None, "cannot read the descriptor set"),
    ],
)
def test_files_of_schemas_are_looked_into_beside_the_pipeline_file(
    tmp_path: Path, entry: dict[str, Any], content: bytes | None, expected: str | None
) -> None:
    """Of sources, tables and sinks, wherever the command is run."""
    path = tmp_path / "pipelines" / "orders.yaml"
    path.parent.mkdir()
    if content is not None:
        (path.parent / entry["schema"]).write_bytes(content)
    values = small(
        sources={"orders": {"topic": "orders", **entry}},
        tables={"others": {"topic": "others", **entry}},
        steps=[{"sql": "SELECT o.id FROM orders o, others"}],
        sinks=[{"topic": "out", **entry}],
        tests=[],
    )
    _, found = find_problems(Document(path=path, values=values))
    if expected is None:
        assert found == []
    else:
        assert [place for place, _ in found] == ["sources.orders.format", "tables.others.format", "sinks[0]"]
        assert all(expected in text for _, text in found), found
