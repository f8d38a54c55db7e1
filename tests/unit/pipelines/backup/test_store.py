"""A place on disk: whole objects or none, and one run at a time. A bucket, by the requests that it gets."""

from pathlib import Path

import pytest
from tests.asked_bucket import asked_bucket

from ottla.pipelines.backup import store
from ottla.pipelines.backup.manifest import BackupProblem, MissingObject
from ottla.pipelines.backup.store import Stored, place_of
from ottla.pipelines.connectors.objects.store import S3Access


def test_objects_go_in_and_out(tmp_path: Path) -> None:
    place = place_of(str(tmp_path / "place"))
    assert store.listed(place) == []
    store.write(place, "data/a/1", b"one")
    store.write(place, "data/a/1", b"other")
    store.write(place, "data/b/c/2", memoryview(b"two"))
    (tmp_path / "place/data/b/.2.77.part").write_bytes(b"half")
    assert store.listed(place) == [Stored("data/a/1", 5), Stored("data/b/c/2", 3)]
    assert store.listed(place, "data/b") == [Stored("data/b/c/2", 3)]
    assert store.read(place, "data/a/1") == b"other"
    with pytest.raises(MissingObject, match=r"data/x is missing"):
        store.read(place, "data/x")


def test_what_is_deleted_leaves_no_empty_folders_and_no_halves(tmp_path: Path) -> None:
    place = place_of(str(tmp_path))
    store.write(place, "data/b/c/2", b"two")
    (tmp_path / "data/b/c/.2.77.part").write_bytes(b"half")
    store.delete(place, "data/b/c/2")
    store.delete(place, "data/b/c/2")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_for_one_run_at_a_time(tmp_path: Path) -> None:
    place = place_of(str(tmp_path / "place"))
    with store.alone(place), pytest.raises(BackupProblem, match="another run is at work"), store.alone(place):
        pass
    with store.alone(place):
        pass


def test_places_are_folders_and_buckets() -> None:
    assert place_of("file:///a/b").root == "/a/b"
    found = place_of("s3://bucket/deep/place/", S3Access(endpoint="http://x"))
    assert (found.root, str(found)) == ("bucket/deep/place", "s3://bucket/deep/place")
    assert found.s3 == S3Access(endpoint="http://x")
    for wrong in ("s3://", "gs://bucket/x"):
        with pytest.raises(BackupProblem):
            place_of(wrong)


def test_an_object_of_a_bucket_comes_in_one_request() -> None:
    """Pieces of it would cost a request each, and a server that reads the whole object for each piece crawls."""
    content = bytes(range(256)) * 8_000
    with asked_bucket(content) as (access, asked):
        assert store.read(place_of("s3://bucket/place", access), "data/a") == content
    assert asked == ["HEAD", "GET"]
