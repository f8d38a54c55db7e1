"""What a restore would do, and what stands in its way."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from tests.unit.pipelines.backup.samples import manifest, partition, stored, topic

from ottla.model.names import TopicPartition
from ottla.pipelines.backup.manifest import AclBackup, BackupProblem, GroupBackup, GroupOffset, Manifest
from ottla.pipelines.backup.restore_plan import (
    FoundTarget,
    Marker,
    RestorePlan,
    RestoreRequest,
    cut_object,
    decide,
    name_of,
    renamed_acls,
)

DENSE = topic(partition(stored(0, 10), stored(10, 30)), name="dense", cleanup_policy="compact", retention_ms="5")
GAPS = topic(partition(stored(0, 10), stored(10, 30, records=7)), name="gaps")
LATE = topic(partition(stored(5, 10), log_start=5), name="late", min_insync_replicas="2")
GROUP = GroupBackup(
    group="g",
    offsets=[GroupOffset(topic="dense", partition=0, offset=3), GroupOffset(topic="gaps", partition=0, offset=3)],
)
BACKUP = msgspec.structs.replace(manifest([DENSE, GAPS, LATE]), groups=[GROUP])


def plan(
    request: RestoreRequest | None = None,
    *,
    there: Mapping[str, FoundTarget] | None = None,
    ends: Mapping[TopicPartition, int] | None = None,
    markers: Mapping[TopicPartition, Marker] | None = None,
    backup: Manifest = BACKUP,
    brokers: int = 3,
    takes_none: str | None = "it is not an Ottla cluster",
) -> RestorePlan:
    return decide(
        backup, request or RestoreRequest(), ends=ends or {}, there=there or {}, markers=markers or {},
        brokers=brokers, now_ms=1, takes_no_batches=takes_none,
    )  # fmt: skip


def test_offsets_stay_where_the_log_begins_at_0_without_gaps() -> None:
    assert {each.target: each.same for each in plan().topics} == {"dense": True, "gaps": False, "late": False}
    emptied = plan(there={"dense": FoundTarget([(7, 7)])})
    assert not emptied.topics[0].same, "a topic that had records goes on behind them"
    assert plan(there={"dense": FoundTarget([(0, 0)])}).topics[0].same


def test_offsets_stay_in_an_ottla_cluster_also_where_some_are_missing() -> None:
    found = plan(takes_none=None)
    assert {each.target: each.partitions[0].way for each in found.topics} == {
        "dense": "counted", "gaps": "offsets", "late": "offsets",
    }  # fmt: skip
    assert all(each.same and not each.exact for each in found.topics)
    assert not found.needs_map
    assert {each.target for each in found.topics if "mirror.source" in each.meanwhile} == {"gaps", "late"}
    (emptied,) = plan(RestoreRequest(topics="gaps"), takes_none=None, there={"gaps": FoundTarget([(7, 7)])}).topics
    assert emptied.partitions[0].way == "mapped"


def test_a_topic_with_records_is_never_written_to() -> None:
    with pytest.raises(BackupProblem, match="has a topic dense with records") as caught:
        plan(there={"dense": FoundTarget([(0, 5)]), "gaps": FoundTarget([(0, 0), (0, 0)])})
    assert "an empty topic gaps with 2 partitions, and the backup has 1" in str(caught.value)
    assert plan(RestoreRequest(prefix="x."), there={"dense": FoundTarget([(0, 5)])}).topics[0].target == "x.dense"


def test_what_was_begun_before_is_gone_on_with_as_it_began() -> None:
    at = TopicPartition("dense", 0)
    name = name_of(BACKUP, RestoreRequest(), {})
    marker = Marker(restore=name, source="dense", way="mapped", end=30)
    begun = plan(there={"dense": FoundTarget([(0, 5)])}, markers={at: marker}).topics[0].partitions[0]
    assert (begun.begun, begun.same, begun.done) == (True, False, False)
    other = Marker(restore="another", source="dense", way="mapped", end=30)
    with pytest.raises(BackupProblem, match="with records"):
        plan(there={"dense": FoundTarget([(0, 5)])}, markers={at: other})
    assert name != name_of(BACKUP, RestoreRequest(prefix="x."), {})
    assert name != name_of(BACKUP, RestoreRequest(), {at: 5})


def test_names_have_to_be_possible() -> None:
    with pytest.raises(BackupProblem, match="gaps and dense would both become gaps"):
        plan(RestoreRequest(rename={"dense": "gaps"}))
    with pytest.raises(BackupProblem, match=r"dense cannot become `a b`"):
        plan(RestoreRequest(rename={"dense": "a b"}))
    with pytest.raises(BackupProblem, match="--rename names nobody"):
        plan(RestoreRequest(rename={"nobody": "x"}))
    with pytest.raises(BackupProblem, match="no topic of backup"):
        plan(RestoreRequest(topics="x"))


def test_settings_are_held_back_and_then_those_of_the_backup() -> None:
    dense = plan().topics[0]
    assert dense.meanwhile["cleanup.policy"] == "delete"
    assert dense.meanwhile["retention.ms"] == "-1"
    assert dense.finally_ == {"cleanup.policy": "compact", "retention.ms": "5"}
    assert "message.timestamp.before.max.ms" in dense.reset
    assert "retention.ms" not in dense.reset
    held = plan(RestoreRequest(hold_retention=True)).topics[0]
    assert held.finally_["cleanup.policy"] == "delete"
    assert held.finally_["retention.ms"] == "-1"


def test_a_smaller_cluster_gets_fewer_replicas_and_is_told() -> None:
    small = plan(brokers=1)
    assert {each.replication_factor for each in small.topics} == {1}
    assert small.topics[2].finally_ == {}
    assert any("late goes without min.insync.replicas=2" in text for text in small.notes)
    assert any("late gets 1 replicas; late had 3" in text for text in small.notes)


def test_old_records_that_retention_would_delete_are_told() -> None:
    old = manifest([topic(partition(stored(0, 10, max_timestamp=5)), retention_ms="1000")])
    told = decide(old, RestoreRequest(), ends={}, there={}, markers={}, brokers=3, now_ms=10_000, takes_no_batches=None)
    assert any("older than retention.ms=1000" in text for text in told.notes)
    request = RestoreRequest(hold_retention=True)
    assert not decide(
        old, request, ends={}, there={}, markers={}, brokers=3, now_ms=10_000, takes_no_batches=None
    ).notes


RAW_TOPIC = topic(
    partition(
        msgspec.structs.replace(stored(5, 30, records=7), kind="raw"),
        msgspec.structs.replace(stored(30, 40, records=0), kind="raw"), log_start=7, end=40,
    ),
    name="raw", mirror_source="c/1", retention_ms="5",
)  # fmt: skip
RAW = msgspec.structs.replace(manifest([RAW_TOPIC]), kind="raw")


def test_raw_batches_come_back_as_they_were_where_the_target_takes_them() -> None:
    (found,) = plan(backup=RAW, takes_none=None).topics
    assert (found.exact, found.same) == (True, True)
    assert found.meanwhile["mirror.source"] == f"restore/{name_of(RAW, RestoreRequest(), {})}"
    assert "mirror.source" in found.reset, "and then it is an ordinary topic, also where it was a mirror"
    assert found.finally_ == {"retention.ms": "5"}
    assert plan(backup=RAW, takes_none=None, there={"raw": FoundTarget([(0, 0)])}).topics[0].exact


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"takes_none": "that needs ClusterAction on the cluster"}, "ClusterAction"),
        ({"ends": {TopicPartition("raw", 0): 20}}, "only a part"),
        ({"there": {"raw": FoundTarget([(9, 9)])}}, "had records before"),
        (
            {"backup": msgspec.structs.replace(RAW, topics=[topic(partition(stored(0, 9)), name="raw")])},
            "as Parquet",
        ),
        (
            {
                "backup": msgspec.structs.replace(
                    RAW, topics=[topic(msgspec.structs.replace(RAW_TOPIC.partitions[0], lost=[(30, 40)]), name="raw")]
                )
            },
            "retention deleted some",
        ),
    ],
)
def test_why_raw_batches_are_written_anew_is_said(changes: dict[str, Any], why: str) -> None:
    told = plan(**{"backup": RAW, "takes_none": None} | changes)
    assert not told.topics[0].exact
    assert [text for text in told.notes if why in text]


def test_a_restore_that_was_cut_short_behind_its_last_batch_writes_none_again() -> None:
    name = name_of(RAW, RestoreRequest(), {})
    marker = Marker(restore=name, source="raw", way="batches", end=40, reached=40)
    markers = {TopicPartition("raw", 0): marker}
    for source, written in ((f"restore/{name}", False), ("", True)):
        there = {"raw": FoundTarget([(7, 50)], source)}
        (found,) = plan(backup=RAW, there=there, markers=markers).topics[0].partitions
        assert (found.way, found.begun, found.written, found.reached) == ("batches", True, written, 40)


def test_a_mirror_is_not_restored_into() -> None:
    with pytest.raises(BackupProblem, match="raw is a read-only mirror"):
        plan(backup=RAW, there={"raw": FoundTarget([(0, 0)], "east/1")})


def test_an_earlier_end_leaves_out_what_is_behind_it() -> None:
    at = TopicPartition("dense", 0)
    (cut,) = plan(RestoreRequest(topics="dense"), ends={at: 10}).topics[0].partitions
    assert (cut.end, len(cut.objects), cut.same) == (10, 1, True)
    timed = partition(stored(0, 10, max_timestamp=5), stored(10, 20, max_timestamp=9))
    assert cut_object(timed, 9) is None
    found = cut_object(timed, 5)
    assert found is not None
    assert found.start == 10


def test_groups_come_with_the_topics_that_are_restored() -> None:
    (group,) = plan(RestoreRequest(topics="dense")).groups
    assert [each.topic for each in group.offsets] == ["dense"]
    assert plan(RestoreRequest(topics="late")).groups == []
    assert plan(RestoreRequest(groups="x")).groups == []


def test_acls_follow_a_topic_to_its_new_name() -> None:
    def rule(name: str, resource: int = 2, pattern: int = 3) -> AclBackup:
        return AclBackup(
            resource=resource, name=name, pattern=pattern, principal="User:a", host="*", operation=3, permission=3
        )

    rules = [rule("dense"), rule("*"), rule("dense", resource=3), rule("de", pattern=4)]
    request = RestoreRequest(rename={"dense": "new"})
    assert [each.name for each in renamed_acls(rules, request, ["dense"])] == ["new", "*", "dense", "de"]
