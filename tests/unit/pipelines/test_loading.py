"""Files to documents: YAML as people expect it, SQL files, Python files."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.lint import check
from ottla.pipelines.loading import load, read_yaml

HERE = Path("pipeline.yaml")


def test_words_are_not_booleans_and_numbers_are_numbers() -> None:
    values, _ = read_yaml(HERE, "{on: no, a: 1e6, b: 010, c: 12:30, d: 2026-01-01, e: true, f: , g: 1_000, h: -1.5}")
    assert values == {
        "on": "no", "a": 1e6, "b": 10, "c": "12:30", "d": "2026-01-01", "e": True, "f": None, "g": "1_000", "h": -1.5,
    }  # fmt: skip


def test_every_place_has_its_line() -> None:
    _, lines = read_yaml(HERE, "a:\n  - b: 1\n  - c:\n      d: 2\n")
    assert {place: lines[place] for place in ("a", "a[0]", "a[1].c", "a[1].c.d")} == {
        "a": 1, "a[0]": 2, "a[1].c": 3, "a[1].c.d": 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "it is empty"),
        ("a: 1\nb: [1\n", "this is not YAML"),
        ("a: 1\na: 2\n", "line 2, a: this key stands here twice"),
        ("? [a]\n: 1\n", "a key must be a word"),
        ("&a [*a, *a]", "nested deeper"),
        ("a: \x00", "not YAML"),
        ("[" + "&a [1], " + "*a, " * 10_001 + "]", "more than 10000 values"),
        ("!!python/object/apply:os.system [true]", "this is not YAML"),
        ("{a: " * 60 + "1" + "}" * 60, "nested deeper"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, expected: str) -> None:
    with pytest.raises(InvalidPipeline) as raised:
        read_yaml(HERE, text)
    assert expected in str(raised.value)


@given(st.text(alphabet="ab:{}[]-&*!?|>'\"%#,\n \t0123\x00é", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidPipeline):
        read_yaml(HERE, text)


def test_a_sql_file_is_a_header_and_statements(tmp_path: Path) -> None:
    path = tmp_path / "big.sql"
    path.write_text(
        "-- ottla:\n"
        "--   name: big\n"
        "--   sources: {orders: {topic: orders}}\n"
        "--   sinks: [{topic: out}]\n"
        "\n"
        "-- just a comment\n"
        "-- as: priced\n"
        "SELECT *, ';' AS mark -- why; not\n"
        "FROM orders;\n"
        "-- step: {expect: {rule: 'a < 1'}}\n"
        "\n"
        "SELECT * /* ; */ FROM input\n"
    )
    document = load(path)
    assert document.values["steps"] == [
        {"sql": "SELECT *, ';' AS mark \nFROM orders", "as": "priced"},
        {"expect": {"rule": "a < 1"}},
        {"sql": "SELECT *  FROM input"},
    ]
    assert [document.lines[f"steps[{number}]"] for number in range(3)] == [8, 10, 12]
    assert document.where("sinks[0].kye") == "line 4, sinks[0].kye"


def test_a_sql_file_without_a_header_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "big.sql"
    path.write_text("SELECT 1")
    with pytest.raises(InvalidPipeline, match="begins with a comment `-- ottla:`"):
        load(path)


def test_a_python_file_has_the_same_model(tmp_path: Path) -> None:
    path = tmp_path / "small.py"
    path.write_text(
        "from ottla.pipelines.spec import Pipeline\n"
        "pipeline = Pipeline(name='small', sources={'orders': {'topic': 'orders'}}, sinks=[{'topic': 'out'}])\n"
    )
    values = load(path).values
    assert {key: values[key] for key in ("name", "sources", "sinks")} == {
        "name": "small",
        "sources": {"orders": {"topic": "orders"}},
        "sinks": [{"topic": "out"}],
    }
    assert check(load(path)).spec.errors.restart == "on-failure"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", "defines no `pipeline`"),
        ("pipeline = 3", "`pipeline` is a int"),
        ("1 / 0", "cannot be run: ZeroDivisionError"),
        ("def (", "cannot be run: SyntaxError"),
    ],
)
def test_a_python_file_that_does_not_work_says_why(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(InvalidPipeline) as raised:
        load(path)
    assert expected in str(raised.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("")
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    for name, expected in (
        ("a.toml", "write .yaml, .sql or .py"),
        ("b.yaml", "not UTF-8"),
        ("c.yaml", "cannot be read"),
    ):
        with pytest.raises(InvalidPipeline, match=expected):
            load(tmp_path / name)
