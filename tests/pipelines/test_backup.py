"""Backups of a real cluster and back into another: records of every kind, groups, kills, damage, other names."""

import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
import pytest
from tests.committed import read_committed
from tests.pipelines.backups import (
    EARLY,
    At,
    Backups,
    cluster_at,
    content_of,
    contents,
    first_unread,
    log_of,
    send,
)
from tests.pipelines.standbys import raw as raw_log
from tests.pipelines.two_clusters import MAIN, ROOT, TwoClusters, asks, driver

from ottla.cli.main import main
from ottla.client import admin
from ottla.client.groups import commit_offsets, group_offsets, list_groups
from ottla.client.offsets import delete_records
from ottla.pipelines.backup import store
from ottla.pipelines.backup.batches import Walk
from ottla.pipelines.backup.manifest import BackupProblem, DamagedBackup, Kind
from ottla.pipelines.backup.naming import manifest_path
from ottla.pipelines.backup.planning import Part
from ottla.pipelines.backup.pruning import prune_place
from ottla.pipelines.backup.restore_plan import RestoreRequest
from ottla.pipelines.backup.restoring import plan_restore
from ottla.pipelines.backup.store import place_of
from ottla.pipelines.backup.taking import TakeTask, take
from ottla.pipelines.backup.work import OnSpark
from ottla.protocol.apis import ApiKey
from ottla.spark import loop
from ottla.spark.reading import resolving
from ottla.testing import broker
from ottla.testing.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: tuple[Kind, ...] = get_args(Kind)


@pytest.fixture
def name(unique: Callable[[str], str]) -> str:
    return unique("backup")


@pytest.fixture
def backups(clusters: TwoClusters, tmp_path: Path) -> Backups:
    return Backups(place_of(str(tmp_path / "place")), clusters.east)


def fill(both: TwoClusters, name: str, bootstrap: str | None = None) -> dict[str, int]:
    """Topics of every kind in east, with their partitions."""
    east = bootstrap or both.east
    plain = both.topic(east, f"{name}.plain", 2, {"retention.ms": "604800000", "max.message.bytes": "2000000"})
    for partition in (0, 1):
        send(east, plain, range(300), partition=partition, settings={"compression.type": "zstd"})
    transactional = both.topic(east, f"{name}.transactional")
    send(east, transactional, range(40), end="commit")
    send(east, transactional, range(40, 55), end="abort")
    send(east, transactional, range(55, 60))
    send(east, transactional, range(60, 75), end="commit")
    expiring = both.topic(east, f"{name}.expiring", 1, {"message.timestamp.type": "CreateTime"})
    send(east, expiring, range(50))
    loop.run(delete_records(cluster_at(east), {At(expiring, 0): 17}))
    both.topic(east, f"{name}.empty", 1, {"cleanup.policy": "compact"})
    return {plain: 2, transactional: 1, expiring: 1, f"{name}.empty": 1}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_everything_comes_back_with_groups_at_the_next_record(
    clusters: TwoClusters, backups: Backups, name: str, kind: Kind, spark: "SparkSession"
) -> None:
    """On Spark: each part and each object is a task of its own."""
    both = clusters
    topics = fill(both, name)
    places = [At(topic, partition) for topic, count in topics.items() for partition in range(count)]
    ends = {
        at: (read_committed(both.east, *at)[-1].offset + 1 if not at.topic.endswith("empty") else 0) for at in places
    }
    east, west = cluster_at(both.east), cluster_at(both.west)
    groups = {f"{name}.g{share}": {at: end * share // 7 for at, end in ends.items()} for share in range(8)}
    for group, offsets in groups.items():
        loop.run(commit_offsets(east, group, offsets, metadata=dict.fromkeys(offsets, f"of {group}")))
    loop.run(commit_offsets(east, f"{name}.ahead", {At(f"{name}.plain", 0): 10**6}))
    working = replace(backups, tasks=OnSpark(spark))
    manifest = working.take(f"{re.escape(name)}.*", kind)
    assert {topic.name: len(topic.partitions) for topic in manifest.topics} == topics
    assert next(group for group in manifest.groups if group.group == f"{name}.ahead").offsets[0].offset == 300
    found = working.verify()
    assert found.problems == []
    assert found.records == manifest.records == sum(len(read_committed(both.east, *at)) for at in places)

    done = working.restore(manifest, both.west, RestoreRequest(groups=f"{re.escape(name)}.*"))
    assert done.problems == []
    assert done.records == manifest.records
    assert all(topic.same for topic in done.plan.topics)
    raw = kind == "raw"
    assert {topic.exact for topic in done.plan.topics} == {raw}
    for at in places:
        source, target = read_committed(both.east, *at), read_committed(both.west, *at)
        assert [each.content() for each in target] == [each.content() for each in source]
        assert target == source, "offsets, too"
        assert not raw or raw_log(west, at) == raw_log(east, at)
        assert loop.run(resolving.earliest(west, [at])) == loop.run(resolving.earliest(east, [at]))
        for group, offsets in groups.items():
            place = loop.run(group_offsets(west, group))[at]
            assert place.metadata == f"of {group}"
            assert first_unread(target, place.offset) == first_unread(source, offsets[at])
    ours, theirs = (loop.run(admin.topic_settings(cluster, [*topics])) for cluster in (east, west))
    assert ours == theirs
    left = {topic.name for topic in loop.run(admin.list_topics(west)) if "ottla-restore" in topic.name}
    assert not left
    assert not [group for group in loop.run(list_groups(west)) if group.group_id.startswith("ottla.restore")]


@pytest.mark.timeout(600)
def test_parquet_is_rows_for_anybody_and_raw_is_the_log(
    clusters: TwoClusters, backups: Backups, name: str, spark: "SparkSession"
) -> None:
    both = clusters
    topic = both.topic(both.east, f"{name}.t")
    send(both.east, topic, range(20), end="commit")
    send(both.east, topic, range(20, 30), end="abort")
    backups.take(re.escape(topic))
    rows = spark.read.parquet(f"{backups.place.root}/data/*/{topic}/*/*.parquet").orderBy("offset").collect()
    assert [(row.offset, row.key, row.value, int(row.timestamp.timestamp() * 1000)) for row in rows] == [
        (each.offset, each.key, each.value, each.timestamp_ms) for each in read_committed(both.east, topic)
    ]
    assert [[(header.key, header.value) for header in row.headers or []] for row in rows] == [
        [*each.headers] for each in read_committed(both.east, topic)
    ]
    assert {(row.topic, row.partition, row.timestamp_type) for row in rows} == {(topic, 0, 0)}

    raw = backups.take(re.escape(topic), "raw", full=True)
    (stored,) = [stored for _, stored in raw.objects()]
    content = store.read(backups.place, stored.path)
    found = [*Walk(stored.aborted).batches(content)]
    assert stored.records == 20
    assert [each.counts for each in found if not each.header.is_control] == [True, False]
    assert sum(each.header.is_control for each in found) == 2
    assert found[-1].header.next_offset == stored.end == 32


@pytest.mark.timeout(600)
def test_raw_batches_come_back_byte_for_byte_or_with_the_bytes_of_their_records(
    clusters: TwoClusters, backups: Backups, name: str, tmp_path: Path
) -> None:
    """Where only a part is wanted the producer is new, as brokers number them; codec, records and times stay."""
    topic = clusters.topic(clusters.east, f"{name}.t")
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        send(clusters.east, topic, range(100), settings={"compression.type": codec, "linger.ms": 50})
    send(clusters.east, topic, range(5))
    taken = backups.take(re.escape(topic), "raw")
    for prefix, ends, exact in (("as-it-was.", {}, True), ("part.", {At(topic, 0): 500}, False)):
        done = backups.restore(taken, clusters.west, RestoreRequest(prefix=prefix), until_offsets=ends)
        assert [each.exact for each in done.plan.topics] == [exact]
        back = Backups(place_of(str(tmp_path / prefix)), clusters.west)
        again = back.take(re.escape(f"{prefix}{topic}"), "raw")
        assert not exact or content_of(back, again) == content_of(backups, taken)
        theirs = log_of(back, again)
        assert log_of(backups, taken)[: len(theirs)] == theirs
        assert sum(count for _, _, count, *_ in theirs) == (505 if exact else 500)
        assert {codec for codec, *_ in theirs} == {0, 1, 2, 3, 4}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_gaps_of_compaction_and_times_of_the_log(
    both_kinds_broker: str, backups: Backups, name: str, kind: Kind
) -> None:
    """Offsets stay, with the gaps between them; times that a broker gave are kept as times."""
    bootstrap = both_kinds_broker
    cluster = cluster_at(bootstrap)
    compact = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"}
    for topic, configs in (
        (f"{name}.compact", compact),
        (f"{name}.times", {"message.timestamp.type": "LogAppendTime"}),
    ):
        loop.run(admin.create_topic(cluster, topic, partitions=1, configs=configs))
    topic = f"{name}.compact"
    times = itertools.count(0, 10_000)
    for _ in range(3):
        numbers = [number for number in range(60) if number % 5 > 1]
        send(bootstrap, topic, numbers, later_ms=next(times), settings={"linger.ms": 50})

    def is_compacted() -> bool:
        send(bootstrap, topic, range(2, 5), later_ms=next(times))  # begins a segment: the last one is not compacted
        found = read_committed(bootstrap, topic)
        return found[-1].offset + 1 - len(found) > 30

    wait_until(is_compacted, "the cleaner has been there", seconds=60)
    send(bootstrap, f"{name}.times", range(30))
    working = replace(backups, bootstrap=bootstrap)
    # The cleaner goes on: what is compared is what the backup has.
    manifest = working.take(f"{re.escape(name)}.*", kind)
    assert working.verify().problems == []
    done = working.restore(manifest, bootstrap, RestoreRequest(prefix="new.", hold_retention=True))
    assert done.records == manifest.records
    assert contents(bootstrap, f"new.{name}.times") == contents(bootstrap, f"{name}.times")
    last = {each.key: each.content() for each in read_committed(bootstrap, topic)}
    assert {each.key: each.content() for each in read_committed(bootstrap, f"new.{topic}")} == last
    (restored, _) = done.plan.topics
    assert (restored.same, restored.exact) == (True, kind == "raw")
    kept = {each.offset: each for each in read_committed(bootstrap, topic)}
    assert kept.items() <= {each.offset: each for each in read_committed(bootstrap, f"new.{topic}")}.items()


@pytest.fixture(scope="module")
def both_kinds_broker() -> Any:
    with broker({"log.cleaner.backoff.ms": "100"}) as running:
        yield running.bootstrap


@pytest.mark.timeout(600)
def test_increments_share_objects_and_pruning_keeps_what_is_needed(
    clusters: TwoClusters, backups: Backups, name: str
) -> None:
    both = clusters
    topic = both.topic(both.east, f"{name}.t", 2)
    send(both.east, topic, range(50))
    first = backups.take(re.escape(topic))
    send(both.east, topic, range(50, 80))
    send(both.east, topic, range(10), partition=1)
    second = backups.take(re.escape(topic), "raw")
    assert (first.records, second.records, second.parent) == (50, 90, first.id)
    assert [stored.kind for _, stored in second.objects()] == ["parquet", "raw", "raw"]
    with pytest.raises(AssertionError):
        backups.take(re.escape(topic), only_changes=True)  # nothing is new: there is no manifest
    loop.run(commit_offsets(cluster_at(both.east), f"{name}.g", {At(topic, 0): 3}))
    third = backups.take(re.escape(topic), only_changes=True)
    assert [group.group for group in third.groups] == [f"{name}.g"]
    loop.run(delete_records(cluster_at(both.east), {At(topic, 0): 60}))
    fourth = backups.take(re.escape(topic))
    assert fourth.topics[0].partitions[0].log_start == 60
    assert len([*fourth.objects()]) == 2, "what the log has not any more is not carried along"

    pruned = prune_place(backups.place, keep=2, older_than_ms=None, now_ms=0)
    assert pruned.keep == [third.id, fourth.id]
    assert pruned.delete == [], "the third backup needs every object"
    assert backups.verify().problems == []
    pruned = prune_place(backups.place, keep=1, older_than_ms=None, now_ms=0)
    assert len(pruned.delete) == 1
    assert backups.verify().problems == []
    assert backups.restore(fourth, both.west, RestoreRequest()).problems == []
    assert contents(both.west, topic, 0) == contents(both.east, topic, 0)
    assert contents(both.west, topic, 1) == contents(both.east, topic, 1)


@pytest.mark.timeout(600)
def test_a_run_that_was_killed_leaves_no_backup_and_is_gone_on_with(
    clusters: TwoClusters, backups: Backups, name: str
) -> None:
    """In west, behind the gate: killed at the first record that it reads, then when only the manifest is missing."""
    both = clusters
    topics = fill(both, name, both.west)
    working = replace(backups, bootstrap=both.west)
    pattern = f"{re.escape(name)}.*"
    command = ("backup", "run", backups.place.root, "--bootstrap-server", both.west, "--topics", pattern)
    for api in (ApiKey.FETCH, ApiKey.LIST_GROUPS):
        held = both.gate.hold(asks(api))
        with driver(Path(backups.place.root).parent, *command) as kill_at:
            kill_at(held)
        both.gate.open()
        catalogue = working.catalogue()
        assert catalogue.manifests == []
        assert len(catalogue.unfinished) == 1
    (cut_short,) = catalogue.unfinished
    manifest = working.take(pattern)
    assert manifest.id == cut_short, "gone on with, twice"
    assert any("going on with it, 4 of 4 parts are done" in text for text in working.said)
    assert working.catalogue().unfinished == {}
    assert working.verify().problems == []
    assert manifest.records == sum(
        len(read_committed(both.west, topic, at)) for topic in topics for at in range(topics[topic])
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_a_restore_that_was_killed_goes_on_and_writes_nothing_twice(
    clusters: TwoClusters, backups: Backups, name: str, kind: Kind
) -> None:
    both = clusters
    topics = fill(both, name)
    loop.run(commit_offsets(cluster_at(both.east), f"{name}.g", {At(f"{name}.transactional", 0): 50}))
    manifest = backups.take(f"{re.escape(name)}.*", kind)
    command = ("backup", "restore", backups.place.root, "--bootstrap-server", both.west, "--groups", f"{name}.*")
    if kind == "parquet":  # one that has had records cannot have the same offsets: there they are translated
        send(both.west, both.topic(both.west, f"{name}.transactional"), range(3))
        loop.run(delete_records(cluster_at(both.west), {At(f"{name}.transactional", 0): 3}))
    places = [
        (ApiKey.END_TXN, "ottla.restore", False), (ApiKey.END_TXN, "ottla.restore", True),
        (ApiKey.OFFSET_COMMIT, f"{name}.g", False), (ApiKey.DELETE_TOPICS, "ottla-restore-map", True),
    ]  # fmt: skip
    if kind == "raw":  # a value, which only one request with batches has; a setting that is only set at the end
        places = [
            (ApiKey.APPEND_MIRRORED, "v54", False), (ApiKey.APPEND_MIRRORED, "v54", True),
            (ApiKey.INCREMENTAL_ALTER_CONFIGS, "604800000", True), (ApiKey.OFFSET_COMMIT, f"{name}.g", False),
            (ApiKey.DELETE_GROUPS, "ottla.restore", True),
        ]  # fmt: skip
    for api, part, after in places:
        held = both.gate.hold(asks(api, part), after=after)
        with driver(Path(backups.place.root).parent, *command) as kill_at:
            kill_at(held)
        both.gate.open()
    assert main([*command]) == 0
    for topic, count in topics.items():
        for partition in range(count):
            assert contents(both.west, topic, partition) == contents(both.east, topic, partition)
    place = loop.run(group_offsets(cluster_at(both.west), f"{name}.g"))[At(f"{name}.transactional", 0)].offset
    source, target = (read_committed(bootstrap, f"{name}.transactional") for bootstrap in (both.east, both.west))
    assert first_unread(target, place) == first_unread(source, 50)
    with pytest.raises(BackupProblem, match="with records"):
        plan_restore(backups.options(both.west, RestoreRequest()), manifest)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_records_that_expire_while_they_are_read_are_named(
    clusters: TwoClusters, backups: Backups, name: str, kind: Kind
) -> None:
    topic = clusters.topic(clusters.east, f"{name}.t")
    send(clusters.east, topic, range(50))
    loop.run(delete_records(cluster_at(clusters.east), {At(topic, 0): 17}))
    part = Part(number=0, topic=topic, partition=0, start=0, end=50, opens=True, estimated_bytes=1)
    client = {"bootstrap.servers": clusters.east}
    done = take(TakeTask(backup="r", kind=kind, place=backups.place, client=client, part=part))
    assert done.lost == [(0, 17)]
    assert [(each.start, each.end, each.records) for each in done.objects] == [(17, 50, 33)]


@pytest.mark.timeout(600)
def test_damage_is_found_and_refused(clusters: TwoClusters, backups: Backups, name: str) -> None:
    both = clusters
    topic = both.topic(both.east, f"{name}.t")
    send(both.east, topic, range(50))
    backups.take(re.escape(topic))
    send(both.east, topic, range(50, 60))
    manifest = backups.take(re.escape(topic), "raw")
    for _, stored in manifest.objects():
        path = Path(backups.place.root, stored.path)
        content = path.read_bytes()
        for damaged, what in (
            (bytes([*content[:100], content[100] ^ 1, *content[101:]]), "fails its checksum"),
            (content[:-3], "and was written with"),
        ):
            path.write_bytes(damaged)
            (problem,) = backups.verify().problems
            assert what in problem
            with pytest.raises(DamagedBackup, match="nothing was restored"):
                backups.restore(manifest, both.west, RestoreRequest(prefix="never."))
        path.unlink()
        (problem,) = backups.verify().problems
        assert "is missing" in problem
        with pytest.raises(DamagedBackup, match="is missing"):
            backups.restore(manifest, both.west, RestoreRequest(prefix="never."))
        path.write_bytes(bytes([content[0] ^ 1, *content[1:]]))
        request = RestoreRequest(prefix=f"{stored.kind}.")
        with pytest.raises(DamagedBackup, match=f"not whole: {stored.kind}.{topic}"):
            backups.restore(manifest, both.west, request, unchecked=True)
        path.write_bytes(content)
        assert backups.restore(manifest, both.west, request).problems == []
        assert contents(both.west, f"{stored.kind}.{topic}") == contents(both.east, topic)
    assert not [found for found in loop.run(admin.list_topics(cluster_at(both.west))) if "never" in found.name]

    path = Path(backups.place.root, manifest_path(manifest.id))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert main(["backup", "verify", backups.place.root]) == 1
    for words in (["restore", "--prefix", "never."], ["restore", "--backup", manifest.id], ["prune", "--keep", "1"]):
        assert main(["backup", words[0], backups.place.root, *words[1:]]) == 1
    path.write_bytes(content)
    assert main(["backup", "verify", backups.place.root]) == 0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_commands_restore_under_other_names_up_to_a_time_or_an_offset(
    clusters: TwoClusters, backups: Backups, name: str, kind: Kind, capsys: pytest.CaptureFixture[str]
) -> None:
    both = clusters
    for topic in ("a", "b"):
        send(both.east, both.topic(both.east, f"{name}.{topic}"), range(30), end="commit")
        send(both.east, f"{name}.{topic}", range(30, 40), end="commit")
    loop.run(commit_offsets(cluster_at(both.east), f"{name}.g", {At(f"{name}.a", 0): 10, At(f"{name}.b", 0): 41}))
    place = backups.place.root
    run = ["backup", "run", place, "--bootstrap-server", both.east, "--topics", f"{name}.*", "--format", kind, "--json"]
    assert main(run) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["records"], told["new_records"]) == (80, 80)
    assert main(["backup", "list", place]) == 0
    assert told["backup"] in capsys.readouterr().out
    restore = ["backup", "restore", place, "--bootstrap-server", both.west, "--json", "--groups", f"{name}.*"]
    cuts = ["--until", str(EARLY + 24), "--until-offset", f"{name}.b-0=5", "--rename", f"{name}.a={name}.x"]
    assert main([*restore, *cuts, "--prefix", "old.", "--dry-run"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [(each["target"], each["state"]) for each in plan["topics"]] == [
        (f"{name}.x", "new"), (f"old.{name}.b", "new"),
    ]  # fmt: skip
    assert not [found for found in loop.run(admin.list_topics(cluster_at(both.west))) if name in found.name]
    assert main([*restore, *cuts, "--prefix", "old."]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["records"] == 25 + 5
    assert contents(both.west, f"{name}.x") == contents(both.east, f"{name}.a")[:25]
    assert contents(both.west, f"old.{name}.b") == contents(both.east, f"{name}.b")[:5]
    offsets = loop.run(group_offsets(cluster_at(both.west), f"{name}.g"))
    x, b = read_committed(both.west, f"{name}.x"), read_committed(both.west, f"old.{name}.b")
    assert first_unread(x, offsets[At(f"{name}.x", 0)].offset) == contents(both.east, f"{name}.a")[10:25]
    assert first_unread(b, offsets[At(f"old.{name}.b", 0)].offset) == []
    assert main([*restore, "--topics", f"{name}.a", "--rename", f"{name}.a=old.{name}.b"]) == 1
    assert "with records" in capsys.readouterr().err
    assert main(["backup", "restore", place, "--at", "2020-01-01"]) == 1
    assert "no backup that was taken by then" in capsys.readouterr().err


@pytest.mark.timeout(600)
def test_rights_are_taken_and_what_brokers_keep_to_themselves_is_said(backups: Backups, name: str) -> None:
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with broker(settings) as running:
        bootstrap = ["--bootstrap-server", running.bootstrap]
        assert main(["topics", *bootstrap, "--create", "--topic", name]) == 0
        rule = ["--add", "--allow-principal", "User:ann", "--operation", "read", "--topic", name]
        assert main(["acls", *bootstrap, *rule]) == 0
        quota = ["--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "producer_byte_rate=1000"]
        assert main(["configs", *bootstrap, *quota]) == 0
        user = [
            "--alter",
            "--entity-type",
            "users",
            "--entity-name",
            "bob",
            "--add-config",
            "SCRAM-SHA-256=[password=x]",
        ]
        assert main(["configs", *bootstrap, *user]) == 0
        manifest = replace(backups, bootstrap=running.bootstrap).take(name)
        assert manifest.acls is not None
        assert [(each.name, each.principal) for each in manifest.acls] == [(name, "User:ann")]
        assert manifest.quotas is not None
        assert [msgspec.to_builtins(each) for each in manifest.quotas] == [
            {"entity": {"user": "ann"}, "quotas": {"producer_byte_rate": 1000.0}}
        ]
        assert manifest.scram_users is not None
        assert [(each.user, [*each.iterations]) for each in manifest.scram_users] == [("bob", ["SCRAM-SHA-256"])]
        assert any("salted passwords" in text for text in manifest.notes)
        place = ["backup", "restore", backups.place.root, *bootstrap, "--rename", f"{name}={name}.new"]
        assert main([*place, "--acls", "--quotas"]) == 0
        later = replace(backups, bootstrap=running.bootstrap).take(f"{name}.*", full=True)
        assert later.acls is not None
        assert {each.name for each in later.acls} == {name, f"{name}.new"}


@pytest.mark.timeout(600)
def test_continuous_runs_take_what_comes_until_they_are_asked_to_end(
    clusters: TwoClusters, backups: Backups, name: str, tmp_path: Path
) -> None:
    topic = clusters.topic(clusters.east, f"{name}.t")
    send(clusters.east, topic, range(10))
    where = ["--bootstrap-server", clusters.east, "--topics", re.escape(topic)]
    command = ["backup", "run", backups.place.root, *where, "--continuous", "--every", "100 ms", "--keep", "2"]
    log = tmp_path / "continuous.log"
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-c", MAIN, *command], stdout=output, stderr=output, cwd=ROOT)
    try:
        for records in (10, 15, 20):

            def has_all(records: int = records) -> bool:
                assert process.poll() is None, log.read_text()
                found = backups.catalogue().last
                return found is not None and found.records == records

            wait_until(has_all, f"a backup has {records} records", seconds=120)
            send(clusters.east, topic, range(5))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, log.read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert len(backups.catalogue().manifests) <= 2
    assert backups.verify().problems == []
