"""The pure parts of access: roles, masks, password hashes, the access file, delays, sessions, hosts and origins."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.console.access.delays import FREE, KNOWN_MAX, NAME_FREE, SECONDS_MAX, Delays
from ottla.console.access.guarding import foreign_site, is_our_host, safe_path
from ottla.console.access.masking import HIDDEN, BadField, Mask, NotShown, parse_fields
from ottla.console.access.passwords import BadHash, hash_password, read_hash
from ottla.console.access.roles import BUILT_IN, Role, highest, matches
from ottla.console.access.sessions import OF_ONE_USER_MAX, Sessions
from ottla.console.access.users import BadAccessFile, parse_access, read_access_file
from ottla.console.asking import Right
from ottla.console.search.batches import Found
from ottla.console.search.decoding import Decoder, show_plain
from ottla.console.search.query import parse_query
from ottla.console.search.rows import row_of

HASH = hash_password("secret")


# Roles and the access file.


def test_topics_by_pattern() -> None:
    role = Role("r", Right.VIEWER, ("orders*", "pay?", "a.b"))
    assert [role.sees(topic) for topic in ("orders", "orders-eu", "pay1", "pay12", "a.b", "axb", "Orders")] == [
        True, True, True, False, True, False, False,
    ]  # fmt: skip
    assert matches("*" * 100 + "x", "y" * 249) is False, "at once, too"
    assert highest([BUILT_IN["viewer"], BUILT_IN["admin"], BUILT_IN["operator"]]) == BUILT_IN["admin"]
    assert highest([]) is None


def document(**more: Any) -> dict[str, Any]:
    return {
        "roles": {"support": {"right": "viewer", "topics": ["orders*"], "mask": {"orders*": ["ssn", "$.card.number"]}}},
        "users": {"alice": {"password": HASH, "role": "admin"}, "sam": {"password": HASH, "role": "support"}},
        "groups": {"kafka-admins": "admin"},
    } | more


def test_an_access_file_in_yaml_and_json(tmp_path: Path) -> None:
    as_json, as_yaml = tmp_path / "access.json", tmp_path / "access.yaml"
    as_json.write_text(json.dumps(document()))
    as_yaml.write_text(
        "roles:\n  support: {right: viewer, topics: ['orders*'], mask: {'orders*': [ssn, $.card.number]}}\n"
        f"users:\n  alice: {{password: '{HASH}', role: admin}}\n  sam: {{password: '{HASH}', role: support}}\n"
        "groups:\n  kafka-admins: admin\n"
    )
    found = read_access_file(str(as_json))
    assert found == read_access_file(str(as_yaml))
    assert found.check("alice", "secret") == BUILT_IN["admin"]
    assert found.check("alice", "wrong") is None
    assert found.check("nobody", "secret") is None
    sam = found.check("sam", "secret")
    assert sam is not None
    assert sam.mask("orders-1") is not None
    assert sam.mask("other") is None
    assert found.groups["kafka-admins"].right is Right.ADMIN


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"users": {"x": {"password": "plain", "role": "admin"}}}, "users.x.password: it is no password hash"),
        ({"users": {"x": {"password": HASH, "role": "boss"}}}, "there is no role `boss`, but admin, operator, support"),
        ({"roles": {"r": {"right": "root"}}}, "roles.r.right is one of viewer, operator, admin"),
        ({"roles": {"r": {"right": "viewer", "mask": {"*": ["@x"]}}}}, "roles.r.mask.*"),
        ({"roles": {"r": {"right": "viewer", "topics": [""]}}}, "a pattern of topics"),
        ({"groups": {"g": "boss"}}, "groups.g"),
        ({"user": {}}, "unknown field"),
        ({"users": []}, "users"),
    ],
)
def test_a_wrong_access_file_says_where(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(BadAccessFile, match=words.replace("*", r"\*")):
        parse_access(document(**wrong))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, content in (("a.json", "{"), ("b.yaml", "a: [")):
        (tmp_path / name).write_text(content)
        with pytest.raises(BadAccessFile, match=name):
            read_access_file(str(tmp_path / name))
    with pytest.raises(BadAccessFile, match="No such file"):
        read_access_file(str(tmp_path / "none"))


def test_password_hashes() -> None:
    assert hash_password("secret") != HASH, "each has its salt"
    assert read_hash(HASH).fits("secret")
    assert not read_hash(HASH).fits("Secret")
    for wrong in ("", "scrypt$1$8$1$AA$AA", "md5$x", HASH.replace("16384", "99999"), HASH.replace("$8$", "$999$")):
        with pytest.raises(BadHash, match="--hash-password"):
            read_hash(wrong)
    with pytest.raises(BadHash):
        hash_password("")
    with pytest.raises(BadHash):
        hash_password("x" * 2000)


# Masks.


def mask(*fields: str) -> Mask:
    return Mask(parse_fields(fields))


VALUE = {"ssn": "1", "card": {"number": "42", "name": "A"}, "list": [{"ssn": 2}, {"x": None}], "n": None}


def test_fields_are_hidden_by_name_and_by_path() -> None:
    assert mask("ssn").document(VALUE, "value") == {
        **VALUE, "ssn": HIDDEN, "list": [{"ssn": HIDDEN}, {"x": None}],
    }  # fmt: skip
    assert mask("$.card.number").document(VALUE, "value")["card"] == {"number": HIDDEN, "name": "A"}
    assert mask("$.list[*].ssn").document(VALUE, "value")["list"][0] == {"ssn": HIDDEN}
    assert mask("$.list[-2].ssn").document(VALUE, "value")["list"][0] == {"ssn": HIDDEN}
    assert mask("$.card").document(VALUE, "value")["card"] == HIDDEN
    assert mask("$.*").document({"a": 1, "b": None}, "value") == {"a": HIDDEN, "b": None}
    assert mask("key.$.id").document({"id": 1}, "key") == {"id": HIDDEN}
    assert mask("key.$.id").document({"id": 1}, "value") == {"id": 1}
    assert VALUE["ssn"] == "1", "the document itself stays"


def test_what_is_shown_and_exported_is_masked() -> None:
    found = Found(0, 1, 5, b"k", json.dumps(VALUE).encode(), (("token", b"t"), ("other", b"o")))
    masked = mask("ssn", "header.token")
    shown = masked.decoded(show_plain(found.value or b""), "value")
    assert '"1"' not in shown.text
    assert shown.document["ssn"] == HIDDEN
    assert masked.decoded(show_plain(b"k"), "key").text == "k"
    assert masked.decoded(show_plain(b"text with 1"), "value").text == HIDDEN, "it cannot be looked into"
    assert masked.decoded(show_plain(b"\xff"), "value").text == HIDDEN
    assert masked.decoded(Decoder().show(None), "value").kind == "null"
    assert masked.header("token", "t") == HIDDEN
    assert masked.header("other", "o") == "o"
    row = masked.row(row_of(found, Decoder()))
    assert row["value"]["ssn"] == HIDDEN
    assert row["key"] == "k"
    assert [header["value"] for header in row["headers"]] == [HIDDEN, "o"]
    plain = masked.row(row_of(found._replace(value=b"\xff\x00"), Decoder()))
    assert (plain["value"], "value_encoding" in plain) == (HIDDEN, False)
    assert mask("@key").row(row_of(found, Decoder()))["key"] == HIDDEN
    assert mask("@value").decoded(show_plain(b"{}"), "value").text == HIDDEN


@pytest.mark.parametrize(
    ("fields", "line", "allowed"),
    [
        (("ssn",), "$.ssn=1", False),
        (("ssn",), "$.a.ssn~1", False),
        (("ssn",), "-$.ssn=1", False),
        (("ssn",), "word", False),
        (("ssn",), "value:word", False),
        (("ssn",), "$.*=1", False),
        (("ssn",), "$.name=x", True),
        (("ssn",), "value:null", True),
        (("ssn",), "key=abc", True),
        (("ssn",), "key:ab", False),
        (("ssn",), "partition:0 offset>5", True),
        (("$.card.number",), "$.card.number=1", False),
        (("$.card.number",), '$["card"]["number"]', False),
        (("$.card",), "$.card.number=1", False),
        (("$.card.number",), "$.card.name=x", True),
        (("$.l[0].x",), "$.l[-1].x=1", False),
        (("$.l[0].x",), "$.l[1].x=1", True),
        (("$.l[*].x",), "$.l[1].x=1", False),
        (("key.$.id",), "key.$.id=1", False),
        (("key.$.id",), "key=1", False),
        (("key.$.id",), "$.id=1 value:x", True),
        (("header.token",), "header.token:x", False),
        (("header.token",), "header:other word", True),
        (("@value",), "$.a", False),
        (("@value",), "key:a", True),
    ],
)
def test_a_search_cannot_find_what_is_hidden(fields: tuple[str, ...], line: str, allowed: bool) -> None:
    if allowed:
        mask(*fields).check(parse_query(line))
        return
    with pytest.raises(NotShown, match="hidden from you"):
        mask(*fields).check(parse_query(line))


@pytest.mark.parametrize("field", ["", "@x", "$", "$.", "$.a b", "$.a=1"])
def test_fields_that_are_none(field: str) -> None:
    with pytest.raises(BadField):
        parse_fields((field,))


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ssn"]), inner, max_size=3),
    max_leaves=12,
)


@given(documents)
def test_no_value_of_a_hidden_name_is_left(found: Any) -> None:
    def values(document: Any) -> list[Any]:
        if isinstance(document, list):
            return [each for item in document for each in values(item)]
        if isinstance(document, dict):
            own = [value for name, value in document.items() if name == "ssn"]
            return own + [each for name, item in document.items() if name != "ssn" for each in values(item)]
        return []

    assert set(map(str, values(mask("ssn").document(found, "value")))) <= {HIDDEN, "None"}
    assert mask("nobody-has-this").document(found, "value") == found


# Delays and sessions.


def test_guessing_takes_longer_and_longer() -> None:
    delays, now = Delays(), 0.0
    for _ in range(FREE - 1):
        delays.failed("alice", "1.1.1.1", now)
    assert delays.wait_seconds("alice", "1.1.1.1", now) == 0
    waits = []
    for _ in range(10):
        delays.failed("alice", "1.1.1.1", now)
        waits.append(delays.wait_seconds("alice", "1.1.1.1", now))
    assert waits == [1, 2, 4, 8, 16, 32, SECONDS_MAX, SECONDS_MAX, SECONDS_MAX, SECONDS_MAX]
    assert delays.wait_seconds("alice", "2.2.2.2", now) == 0, "the owner is not locked out"
    assert delays.wait_seconds("alice", "1.1.1.1", now + SECONDS_MAX) == 0
    assert delays.wait_seconds("alice", "1.1.1.1", now + 10_000) == 0
    delays.succeeded("alice", "1.1.1.1")
    assert delays.wait_seconds("alice", "1.1.1.1", now) == 0


def test_those_who_are_let_in_often_do_not_wait() -> None:
    delays = Delays()
    for _ in range(200):
        assert delays.wait_seconds("alice", "1.1.1.1", 0) == 0
        delays.failed("alice", "1.1.1.1", 0)
        delays.succeeded("alice", "1.1.1.1")


def test_guessing_from_many_addresses_and_of_many_names() -> None:
    delays = Delays()
    for number in range(NAME_FREE + 5):
        delays.failed("alice", f"1.1.1.{number}", 0)
    assert 0 < delays.wait_seconds("alice", "9.9.9.9", 0) <= 5
    for number in range(50):
        delays.failed(f"user{number}", "8.8.8.8", 0)
    assert delays.wait_seconds("another", "8.8.8.8", 0) == SECONDS_MAX
    for number in range(KNOWN_MAX):
        delays.failed(f"u{number}", f"a{number}", 1)
    assert len(delays._failures) <= KNOWN_MAX


def test_sessions_end_when_idle_and_when_old() -> None:
    sessions = Sessions(idle_seconds=10, life_seconds=100)
    made, session = sessions.begin("alice", BUILT_IN["viewer"], "file", 0, login={"sasl.password": "secret"})
    assert sessions.find(made, 9) is session
    assert sessions.find(made, 18) is session
    assert sessions.find(made, 29) is None, "idle"
    assert sessions.find(made, 29) is None
    assert "secret" not in repr(session)
    made, _ = sessions.begin("alice", BUILT_IN["viewer"], "file", 0)
    for now in range(0, 101, 5):
        assert sessions.find(made, now) is not None
    assert sessions.find(made, 101) is None, "old"
    made, _ = sessions.begin("alice", BUILT_IN["viewer"], "file", 0)
    sessions.end(made)
    assert sessions.find(made, 1) is None
    sessions.begin("alice", BUILT_IN["viewer"], "file", 0)
    sessions.end_old(11)
    assert len(sessions) == 0, "no password is kept for longer"


def test_sessions_are_bounded_and_ids_are_never_taken_over() -> None:
    sessions = Sessions(at_most=5)
    ids = [sessions.begin(f"u{number}", BUILT_IN["viewer"], "file", number)[0] for number in range(8)]
    assert len(sessions) == 5
    assert [sessions.find(each, 9) is not None for each in ids] == [False] * 3 + [True] * 5
    assert sessions.find("chosen by somebody", 9) is None
    assert len(set(ids)) == 8
    many = Sessions()
    for number in range(OF_ONE_USER_MAX + 10):
        many.begin("alice", BUILT_IN["viewer"], "file", number)
    assert len(many) == OF_ONE_USER_MAX


# Where a request comes from.


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost:8080", True), ("127.0.0.1", True), ("[::1]:8080", True), ("10.1.2.3:80", True),
        ("console.example:8080", True), ("CONSOLE.example.", True), ("evil.example", False), (None, False), ("", False),
        ("console.example.evil", False), ("localhost.evil", False), ("127.0.0.1.evil", False), ("x@localhost", False),
    ],
)  # fmt: skip
def test_names_that_we_go_by(host: str | None, ours: bool) -> None:
    assert is_our_host(host, {"console.example"}) is ours


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": "http://localhost:1"}, False),
        ({"origin": "https://LOCALHOST:1"}, False),
        ({"origin": "http://localhost:2"}, True),
        ({"origin": "http://evil"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://["}, True),
        ({"origin": "http://localhost:1", "sec-fetch-site": "cross-site"}, True),
    ],
)
def test_requests_of_other_sites(headers: dict[str, str], refused: bool) -> None:
    assert (foreign_site({"host": "localhost:1", **headers}) is not None) is refused


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil",
        "https://evil",
        "/\\evil",
        "\\evil",
        "javascript:alert(1)",
        "",
        "/a\r\nSet-Cookie: x=1",
        "/a b",
        "/\t/evil",
    ],
)
def test_nobody_is_sent_elsewhere(wanted: str) -> None:
    assert safe_path(wanted) == "/"


def test_places_of_ours() -> None:
    assert safe_path("/c/local/topics?q=a&page=2") == "/c/local/topics?q=a&page=2"
    assert safe_path("/") == "/"


def test_the_file_of_the_page_is_understood() -> None:
    page = (Path(__file__).parents[4] / "docs" / "console-access.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0].replace("scrypt$16384$8$1$...", HASH)
    found = parse_access(msgspec.yaml.decode(text))
    assert found.users["sam"].role.mask("orders-eu") is not None
    assert found.users["sam"].role.sees("payments") is False
