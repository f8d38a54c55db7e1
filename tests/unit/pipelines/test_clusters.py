"""Named clusters: what is refused, which query writes where, and what a note of positions holds."""

from typing import Any

import pytest
from tests.unit.pipelines.samples import checked

from ottla.model.names import TopicPartition
from ottla.pipelines.errors import InvalidPipeline
from ottla.pipelines.plan import describe, make_plan, tree_lines
from ottla.pipelines.runner.brokers import clusters_of_places
from ottla.spark.writing.progress_notes import BatchNote, last_batch, positions_text, read_note


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "name": "p",
        "clusters": {"east": {"bootstrap": "e:9092"}, "west": {"bootstrap": "w:9092", "client": {}}},
        "sources": {"a": {"topic": "in", "cluster": "east"}},
        "sinks": [{"topic": "out", "cluster": "west"}],
    } | changes


def problems(values: Any) -> str:
    with pytest.raises(InvalidPipeline) as raised:
        checked(values)
    return "\n".join(raised.value.problems)


def test_a_query_across_clusters_says_so() -> None:
    plan = make_plan(checked(spec(errors={"dead_letter": "dead"})))
    (query,) = plan.queries
    assert (query.source_cluster, query.target_cluster, query.crosses_clusters) == ("east", "west", True)
    assert describe(plan)["queries"][0]["clusters"] == {"source": "east", "target": "west"}  # type: ignore[index]
    assert any("in one transaction of the target" in text for _, text in tree_lines(plan))
    assert list(clusters_of_places(plan.checked)) == [
        ("east", "sources.a"), ("west", "sinks[0]"), ("west", "errors.dead_letter"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "crosses"),
    [
        ({"sources": {"a": {"topic": "in", "cluster": "west"}}}, False),
        ({"sinks": [{"topic": "out", "cluster": "east"}]}, False),
        ({"sinks": [{"topic": "out"}]}, True),
        ({"sinks": [{"files": "lake"}]}, False),
        ({"sinks": [{"files": "lake"}], "errors": {"dead_letter": "d", "dead_letter_cluster": "west"}}, True),
        ({"sources": {"a": {"files": "in"}}}, False),
    ],
)
def test_only_topics_to_topics_can_cross(changes: dict[str, Any], crosses: bool) -> None:
    (query,) = make_plan(checked(spec(**changes))).queries
    assert query.crosses_clusters is crosses


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"sources": {"a": {"topic": "in", "cluster": "est"}}}, "there is no cluster `est`: did you mean"),
        ({"clusters": {}}, "there is no cluster `east`: the file has no `clusters`"),
        ({"sinks": [{"topic": "o", "cluster": "west"}, {"topic": "q"}]}, "cannot span two clusters"),
        ({"sources": {"a": {"topic": "in", "cluster": "east"}, "b": {"topic": "in"}},
          "steps": [{"sql": "SELECT * FROM a UNION ALL SELECT * FROM b"}]}, "are read from one cluster"),
        ({"errors": {"dead_letter": "d", "dead_letter_cluster": "east"}}, "dead letters share the transaction"),
        ({"errors": {"dead_letter_cluster": "west"}}, "there is no `dead_letter`"),
        ({"clusters": {"east": {"bootstrap": " "}, "west": {"bootstrap": "w:1"}}}, "clusters.east.bootstrap: is empty"),
        ({"clusters": {"east": {"bootstrap": "e:1", "client": {"bootstrap.servers": "x"}}, "west": {"bootstrap": "w"}}},
         "named by `bootstrap`"),
        ({"clusters": {"east": {"bootstrap": "e:1", "client": {"sasl.mechansim": "x"}}, "west": {"bootstrap": "w"}}},
         "no setting `sasl.mechansim`: did you mean"),
        ({"clusters": {"east": {"bootstrap": "${env:E}"}, "west": {"bootstrap": "w"}}}, "an address is no secret"),
        ({"clusters": {"east": {"bootstrap": "e", "client": {"client.id": "${env:E}"}}, "west": {"bootstrap": "w"}}},
         "Spark shows this setting"),
        ({"sinks": [{"files": "lake", "cluster": "west"}]}, "cluster"),
    ],
)  # fmt: skip
def test_what_cannot_be(changes: dict[str, Any], text: str) -> None:
    assert text in problems(spec(**changes))


def test_secrets_of_clusters_are_secrets() -> None:
    client = {"sasl.password": "${env:WEST}"}
    checked(spec(clusters={"east": {"bootstrap": "e"}, "west": {"bootstrap": "w", "client": client}}))


def test_a_note_with_positions_is_read_like_one_without() -> None:
    positions = positions_text({TopicPartition("b", 0): 3, TopicPartition("a", 1): 15, TopicPartition("a", 0): 12})
    assert positions == "a:0=12,1=15;b:0=3"
    note = BatchNote("q", 7, positions)
    assert read_note(str(note)) == note
    assert last_batch([str(note), str(BatchNote("q", 6)), "ottla-batch q 9 a b"], "q") == 7
    assert positions_text({TopicPartition("t" * 200, number): 1 for number in range(1000)}) == ""
