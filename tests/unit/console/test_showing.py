"""Small things that pages are made of: pages of tables, charts, words, command lines, letters, sentences."""

import pytest

from ottla.console import charts, commands, paging, wording
from ottla.console.letters import letter_of, looks_like_letters, original_headers
from ottla.console.pages.configs import in_unit_of
from ottla.console.pages.topics import in_words
from ottla.console.releases import speaks
from ottla.console.rules_in_words import may, sentence
from ottla.console.search.batches import Found
from ottla.model.acls import ALL_OPERATIONS, AclBinding, AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import ApiKey

KEYS = {"number": lambda row: row, "odd": lambda row: row if row % 2 else None}


def test_pages_of_a_table() -> None:
    page = paging.cut(range(1000), {"page": "3", "per_page": "10"}, text=str, keys=KEYS, sort="-number")
    assert page.items == list(range(979, 969, -1))
    assert (page.total, page.pages) == (1000, 100)
    assert paging.cut(range(100), {"q": "9 8"}, text=str, keys=KEYS, sort="number").items == [89, 98]
    assert paging.cut(range(4), {"sort": "-odd"}, text=str, keys=KEYS, sort="number").items == [3, 1, 0, 2]
    assert paging.cut([], {"page": "7"}, text=str, keys=KEYS, sort="number").items == []
    for odd in ("-5", "x", "99999999999999999999", "0"):
        found = paging.cut(range(3), {"page": odd, "per_page": odd, "sort": odd}, text=str, keys=KEYS, sort="number")
        assert found.items == [0, 1, 2][: len(found.items)]


def test_what_becomes_of_old_records() -> None:
    compacted = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5", "delete.retention.ms": "86400000"}
    words = (
        "of records with the same key the newest stays, as soon as 50% of a log is new, and tombstones go after 1 day"
    )
    assert in_words(compacted) == words
    assert in_words({"retention.ms": "3600000", "retention.bytes": "-1"}) == "records are deleted after 1 hour"
    assert in_words({"cleanup.policy": "delete", "retention.ms": "-1"}) == "records are kept for ever"


def test_charts_escape_their_labels() -> None:
    for chart in (charts.sparkline([1, 2, 0], '"><script>'), charts.bar(1, 0, '"><script>')):
        assert "<script>" not in chart
        assert "style=" not in chart
    assert "svg" not in charts.sparkline([1], "one point is no line")


@pytest.mark.parametrize(
    ("served", "words"),
    [
        ({60: 0, 1: 12}, "Kafka 2.8"),
        ({60: 0, 1: 13, 2: 7, 11: 9, 35: 4}, "Kafka 3.3 or 3.4"),
        ({60: 2, 1: 17, 2: 10, 3: 13}, "Kafka 4.0"),
        ({0: 7}, "Kafka before 2.8"),
        ({60: 2, 1: 18, 2: 11, 35: 5, ApiKey.APPEND_MIRRORED: 0}, "Ottla, as Kafka 4.3"),
    ],
)
def test_which_release_a_broker_speaks_like(served: dict[int, int], words: str) -> None:
    assert speaks(served) == words


def test_words() -> None:
    assert [wording.size(each) for each in (None, 0, 999, 1500, 150_000, 2e15)] == [
        "?",
        "0 B",
        "999 B",
        "1.5 kB",
        "150 kB",
        "2.0 PB",
    ]
    assert [wording.seconds(each) for each in (None, 1.25, 75, 7200, 400_000)] == [
        "?",
        "1.2 s",
        "1 min",
        "2.0 h",
        "4.6 d",
    ]
    assert wording.moment(0) == "1970-01-01 00:00:00.000Z"
    assert wording.moment(10**18) == "1000000000000000000 ms"
    assert wording.moment(-1) == "?"


def test_command_lines_are_safe_to_paste() -> None:
    line = commands.line("kafka-consumer-groups", "a:1", "--group", "x; rm -rf $HOME 'q'")
    assert line == """kafka-consumer-groups.sh --bootstrap-server a:1 --group 'x; rm -rf $HOME '"'"'q'"'"''"""


def test_where_letters_come_from() -> None:
    headers = [
        ("a", b"1"),
        ("ottla.error.topic", b"old"),
        ("ottla.error.topic", b"orders"),
        ("ottla.error.offset", b"x"),
    ]
    letter = letter_of(Found(0, 5, 1, None, b"v", headers))
    assert (letter.topic, letter.source_offset, letter.place) == ("orders", None, "0:5")
    assert original_headers(headers) == [("a", b"1")]
    connect = letter_of(
        Found(0, 5, 1, None, b"v", [("__connect.errors.topic", b"t"), ("__connect.errors.offset", b"9")])
    )
    assert (connect.topic, connect.source_offset) == ("t", 9)
    assert letter_of(Found(0, 5, 1, None, b"v", [])).topic is None
    assert [looks_like_letters(each) for each in ("orders.DLQ", "dead_letters", "deadline", "a-dlq.replayed")] == [
        True,
        True,
        False,
        False,
    ]


def rule(
    resource: Resource,
    name: str,
    operation: int,
    permission: Permission = Permission.ALLOW,
    *,
    who: str = "User:al",
    prefixed: bool = False,
) -> AclBinding:
    pattern = ResourcePattern(resource, name, PatternType.PREFIXED if prefixed else PatternType.LITERAL)
    return AclBinding(pattern, AclEntry(who, "*", operation, permission))


def test_rules_as_sentences() -> None:
    read = rule(Resource.TOPIC, "orders.", Operation.READ, prefixed=True)
    assert sentence(read) == 'al may read records of every topic whose name begins with "orders."'
    deny = rule(Resource.CLUSTER, "kafka-cluster", ALL_OPERATIONS, Permission.DENY, who="User:*")
    assert sentence(deny) == "everybody must not do everything with the cluster"


def test_what_somebody_may_do() -> None:
    rules = [
        rule(Resource.TOPIC, "*", Operation.READ),
        rule(Resource.TOPIC, "secret", Operation.READ, Permission.DENY, who="User:*"),
        rule(Resource.TOPIC, "orders", Operation.WRITE, who="User:other"),
    ]
    allowed = {each.operation for each in may(rules, "User:al", Resource.TOPIC, "orders") if each.allowed}
    assert allowed == {"Read", "Describe"}
    (read,) = [each for each in may(rules, "User:al", Resource.TOPIC, "secret") if each.operation == "Read"]
    assert (read.allowed, read.because) == (False, "everybody must not read records of the topic secret")


@pytest.mark.parametrize(
    ("name", "other", "value", "then"),
    [
        ("retention.ms", "log.retention.hours", "168", "604800000"),
        ("a.bytes", "log.bytes", "5", "5"),
        ("a.ms", "b.hours", None, None),
    ],
)
def test_defaults_in_the_unit_of_the_setting(name: str, other: str, value: str | None, then: str | None) -> None:
    assert in_unit_of(name, other, value) == then
