"""SQL in pipeline files: mistakes are found with their places, and nothing that Spark takes is called a mistake."""

import json
from collections.abc import Iterator
from pathlib import Path

import py4j.java_gateway
import pytest
from pyspark.errors.exceptions.captured import install_exception_handler

from ottla.cli.main import main
from ottla.pipelines.ddl import TYPES, NotUnderstood, UnknownType, check_type, column_names
from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.lint import check_with_sql
from ottla.pipelines.spark_grammar import QUERY, TYPE, CannotAsk, SparkGrammar, in_words
from ottla.pipelines.sql_trees import Unclear, query_tree

HEAD = """
name: orders
sources:
  orders: {topic: orders, format: json, schema: "id STRING, item STRING, amount DOUBLE, at TIMESTAMP", keep: [offset]}
tables:
  items: {topic: items, format: json, schema: "id STRING, name STRING"}
"""
SINKS = "\nsinks: [{topic: out, format: json}]\n"


def nobody(_kind: str, _text: str) -> str | None:
    raise CannotAsk("there is no Java here")


def yes(_kind: str, _text: str) -> str | None:
    return None


def no(_kind: str, _text: str) -> str | None:
    return "Spark refuses it"


def lint(folder: Path, steps: str, refuses: object = nobody, head: str = HEAD, sinks: str = SINKS) -> list[str]:
    path = folder / "p.yaml"
    path.write_text(f"{head}steps:\n{steps}{sinks}")
    try:
        check_with_sql(path, refuses)  # type: ignore[arg-type]
    except InvalidPipeline as error:
        return error.problems
    return []


def test_a_good_file_is_fine_without_asking_spark(tmp_path: Path) -> None:
    steps = """
  - sql: SELECT o.*, i.name FROM orders o JOIN items i ON o.item = i.id
    as: named
  - sql: WITH big AS (SELECT * FROM named WHERE amount > 10) SELECT *, upper(name) AS n FROM big
  - sql: SELECT id, amount * 1.2 AS gross, gross + 1 AS more, offset FROM orders WHERE ID IS NOT NULL ORDER BY gross
    from: orders
  - map: {columns: {net: "gross / 1.2", tags: "transform(array(id), x -> upper(x))"}}
  - filter: net > 0 AND date_trunc('DAY', current_timestamp) > DATE '2020-01-01'
  - drop: [tags]
  - rename: {columns: {net: price}}
  - expect: {rule: price < 1e6}
"""
    assert lint(tmp_path, steps) == []


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("{sql: SELECT * FROM oders}", "line 8, steps[0].sql: there is no source, table or step before it called"),
        ("{sql: SELECT * FROM oders}", "called `oders`: did you mean `orders`?"),
        ("{sql: SELECT 1 FROM orders WHERE id IN (SELECT id FROM itms)}", "called `itms`: did you mean `items`?"),
        ("{join: {with: itms, on: id}}", "steps[0].join.with: there is no source, table or step before it called"),
        ("{sql: SELECT amunt FROM orders}", "steps[0].sql: there is no column `amunt`: did you mean `amount`?"),
        ("{filter: amunt > 0}", "steps[0].filter: there is no column `amunt`: did you mean `amount`?"),
        ("{expect: {rule: amunt > 0}}", "steps[0].expect.rule: there is no column `amunt`"),
        ("{map: {columns: {a: upper(itm)}}}", "steps[0].map.columns.a: there is no column `itm`: did you mean `item`?"),
        ("{window: {time: at, size: 1 minute, watermark: 0 seconds, aggregates: {n: sum(amunt)}}}",
         "steps[0].window.aggregates.n: there is no column `amunt`"),
        ("{select: [id, nme]}", "steps[0].select: there is no column `nme`"),
        ("{cast: {columns: {amount: DUBLE}}}", "steps[0].cast.columns.amount: there is no type `DUBLE`: did you"),
        ('{python: "m:f", schema: "id strng"}', "steps[0].schema: there is no type `strng`: did you mean `STRING`?"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named_with_its_place(tmp_path: Path, step: str, expected: str) -> None:
    (problem,) = lint(tmp_path, f"  - {step}")
    assert expected in problem


def test_a_table_of_the_catalog_has_its_database_before_it(tmp_path: Path) -> None:
    (problem,) = lint(tmp_path, "  - {sql: SELECT * FROM zzz}")
    assert "default.zzz" in problem
    assert lint(tmp_path, "  - {sql: SELECT * FROM default.zzz}") == []


def test_columns_are_followed_from_step_to_step(tmp_path: Path) -> None:
    steps = """
  - sql: SELECT id, amount AS gross FROM orders
  - filter: amount > 0
"""
    assert lint(tmp_path, steps) == ["line 10, steps[1].filter: there is no column `amount`; there are id, gross"]


def test_where_the_columns_are_not_known_none_is_missed(tmp_path: Path) -> None:
    steps = """
  - {python: "m:f"}
  - filter: anything > 0
  - sql: SELECT whatever FROM input
"""
    assert lint(tmp_path, steps) == []


def test_a_type_that_does_not_exist_in_a_source(tmp_path: Path) -> None:
    (problem,) = lint(tmp_path, "  - {filter: id > 0}", head=HEAD.replace("item STRING", "item text"))
    assert problem == "line 4, sources.orders.schema: there is no type `text`: did you mean `STRING`?"


def test_spark_has_the_last_word(tmp_path: Path) -> None:
    broken = "  - {sql: SELEC id FROM orders}\n  - {filter: amount >}"
    assert lint(tmp_path, broken, no) == [
        "line 8, steps[0].sql: Spark refuses it",
        "line 9, steps[1].filter: Spark refuses it",
    ]
    assert lint(tmp_path, broken, yes) == []


def test_sql_of_sinks_is_read_too(tmp_path: Path) -> None:
    sinks = '\nsinks: [{topic: out, format: json, key: "id ||", headers: {h: "(id"}}]\n'
    assert [text.partition(": ")[0] for text in lint(tmp_path, "  - {filter: id > 0}", no, sinks=sinks)] == [
        "line 9, sinks[0].key",
        "line 9, sinks[0].headers.h",
    ]


def test_mistakes_in_sql_come_with_all_others(tmp_path: Path) -> None:
    problems = lint(tmp_path, "  - {filter: amunt > 0}", head=HEAD.replace("name: orders", "name: a b"))
    assert [problem.split(":")[0] for problem in problems] == ["line 2, name", "line 8, steps[0].filter"]


def test_what_nobody_can_judge_is_said_and_is_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkGrammar, "refuses", lambda _self, kind, text: nobody(kind, text))
    path = tmp_path / "p.yaml"
    path.write_text(f"{HEAD}steps: [{{sql: 'SELECT a AS select FROM orders'}}]{SINKS}")
    assert main(["pipeline", "lint", str(path)]) == 0
    assert "steps[0].sql: could not be checked" in capsys.readouterr().err
    assert main(["pipeline", "lint", str(path), "--json"]) == 0
    (document,) = json.loads(capsys.readouterr().out)
    assert document["problems"] == []
    assert "there is no Java here" in document["unchecked"][0]


# Schemas.


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("id STRING, amount DECIMAL(10, 2)", ["id", "amount"]),
        ("`a b` int NOT NULL COMMENT 'x, y', c: bigint", ["a b", "c"]),
        ("a ARRAY<STRUCT<b: INT, c: MAP<STRING, ARRAY<INT>>>>, d interval day to second", ["a", "d"]),
        ("a TIMESTAMP WITHOUT TIME ZONE, b struct<>", ["a", "b"]),
    ],
)
def test_schemas(schema: str, names: list[str]) -> None:
    assert column_names(schema) == names


@pytest.mark.parametrize("schema", ["", "id", "id STRING,", "id STRING amount INT", "id ARRAY<INT", "{}", "a b c d"])
def test_what_is_odd_is_left_to_spark(schema: str) -> None:
    with pytest.raises((NotUnderstood, UnknownType)):
        column_names(schema)


# Spark's own parser.


@pytest.fixture(scope="module")
def grammar() -> Iterator[SparkGrammar]:
    with SparkGrammar() as started:
        yield started


PLAUSIBLE = [
    "SELECT window(ts, '1 minute') w, count(*) FROM t GROUP BY window(ts, '1 minute')",
    "FROM t |> WHERE x > 1 |> EXTEND a * 2 AS z |> DROP a",
    "FROM t |> AGGREGATE sum(x) AS s GROUP BY y",
    "SELECT v:a.b::int FROM t",
    "SELECT a FROM t DISTRIBUTE BY a SORT BY b",
    "SELECT * FROM t CLUSTER BY a",
    "TABLE t",
    "VALUES (1, 'a')",
    "SELECT a AS select, !b FROM t",
    "SELECT * EXCEPT (a) FROM t LATERAL VIEW OUTER explode(xs) e AS x",
    "SELECT stack(2, 'a', a, 'b', b) AS (k, v), named_struct('a', 1).a, m['k'], xs[0] FROM t",
    "SELECT timestampdiff(HOUR, a, b), dateadd(DAY, 1, ts), extract(year FROM ts), INTERVAL 1 DAY FROM t",
    "SELECT count(*) FILTER (WHERE x > 1), any_value(a) IGNORE NULLS, a <=> b, a DIV b, 1L, 1.5D, X'1F', r'\\d' FROM t",
    "SELECT * FROM a LEFT ANTI JOIN b USING (id) CROSS JOIN LATERAL explode(xs) AS e(x)",
    "SELECT a COLLATE UTF8_LCASE, try_cast(a AS INT), from_json(v, 'a INT').a FROM t",
    "SELECT aggregate(xs, 0, (s, x) -> s + x), map_filter(m, (k, v) -> k > v) FROM t",
    "SELECT listagg(a, ',') WITHIN GROUP (ORDER BY a), session_window(ts, '5 minutes').start FROM t GROUP BY ALL",
]


def test_nothing_that_spark_takes_is_refused(grammar: SparkGrammar) -> None:
    assert {query: said for query in PLAUSIBLE if (said := grammar.refuses(QUERY, query)) is not None} == {}
    unclear = []
    for query in PLAUSIBLE:
        try:
            query_tree(query)
        except Unclear:
            unclear.append(query)
    assert unclear, "the quick parser understands all of it: is Spark's own still needed?"


def test_what_spark_refuses_is_told_in_its_words(grammar: SparkGrammar) -> None:
    assert grammar.refuses(QUERY, "SELEC id\nFROM orders") == "Syntax error at or near 'SELEC'. (line 1, pos 0)"


def test_a_session_in_the_same_process_does_not_take_its_errors(
    grammar: SparkGrammar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(py4j.java_gateway, "get_return_value", py4j.java_gateway.get_return_value)
    install_exception_handler()  # as a session does; it puts its own in the place of what was just named
    assert "Syntax error" in str(grammar.refuses(QUERY, "SELEC id"))


def test_the_list_of_types_is_sparks(grammar: SparkGrammar) -> None:
    whole = {
        "array": "array<int>", "map": "map<int, int>", "struct": "struct<a: int>", "interval": "interval day",
        "char": "char(3)", "character": "character(3)", "varchar": "varchar(3)", "geography": "geography(4326)",
        "geometry": "geometry(4326)",
    }  # fmt: skip
    for name in TYPES:
        check_type(whole.get(name, name))
        assert grammar.refuses(TYPE, whole.get(name, name)) is None, name
    for name in ("text", "bool", "datetime", "json", "uuid", "object", "any", "bytes", "number", "null"):
        assert grammar.refuses(TYPE, name) is not None, name
        with pytest.raises(UnknownType):
            check_type(name)


def test_the_query_is_left_out_of_the_words() -> None:
    said = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1, pos 2)\n\n== SQL ==\nx\n^^^\n"
    assert in_words(said) == "Syntax error at or near 'x'. (line 1, pos 2)"
