"""Backups in a bucket: taken, killed and gone on with, verified, damaged, pruned and restored through the S3 API."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipelines.backups import Backups, contents, send
from tests.spark.feeding import create_topic

from ottla.cli.main import main
from ottla.pipelines.backup import store
from ottla.pipelines.backup.manifest import DamagedBackup
from ottla.pipelines.backup.naming import plan_path
from ottla.pipelines.backup.pruning import prune_place
from ottla.pipelines.backup.restore_plan import RestoreRequest
from ottla.pipelines.backup.store import place_of
from ottla.pipelines.backup.taking import REPEATED
from ottla.pipelines.connectors.objects.store import S3Access
from ottla.testing import RunningBroker


@pytest.mark.timeout(300)
def test_a_bucket_is_as_good_as_a_folder(
    ottla_broker: RunningBroker, access: dict[str, Any], bucket: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    name, bootstrap = unique("s3-backup"), ottla_broker.bootstrap
    create_topic(bootstrap, f"{name}.t", 2)
    send(bootstrap, f"{name}.t", range(50))
    send(bootstrap, f"{name}.t", range(50, 80), partition=1, end="commit")
    backups = Backups(place_of(f"s3://{bucket}/deep/place", S3Access(**access)), bootstrap)
    first = backups.take(re.escape(f"{name}.t"))
    send(bootstrap, f"{name}.t", range(80, 90))
    second = backups.take(re.escape(f"{name}.t"), "raw")
    assert (first.records, second.records) == (80, 90)
    assert backups.verify().problems == []
    ((_, rows), *_rest) = first.objects()
    group: Any = pq.read_metadata(pa.BufferReader(store.read(backups.place, rows.path))).row_group(0)
    with_dictionary = [each["path_in_schema"] for each in group.to_dict()["columns"] if each["has_dictionary_page"]]
    assert with_dictionary == REPEATED, "looking for values that come twice costs more than it saves"
    assert not [each for each in store.listed(backups.place) if each.path.startswith("runs/")]
    done = backups.restore(second, bootstrap, RestoreRequest(prefix="new."))
    assert done.records == 90
    for partition in (0, 1):
        assert contents(bootstrap, f"new.{name}.t", partition) == contents(bootstrap, f"{name}.t", partition)

    # Somebody was killed: a plan without a manifest, and objects that nobody names.
    store.write(backups.place, plan_path("20200101T000000.000Z"), b"{")
    store.write(backups.place, "data/20200101T000000.000Z/t/0/x.parquet", b"x")
    assert [*backups.catalogue().unfinished] == ["20200101T000000.000Z"]
    third = backups.take(re.escape(f"{name}.t"))
    assert not backups.catalogue().unfinished
    assert prune_place(backups.place, keep=1, older_than_ms=None, now_ms=0).keep == [third.id]
    assert backups.verify().problems == []

    (_, stored), *_rest = third.objects()
    store.write(backups.place, stored.path, b"else")
    assert len(backups.verify().problems) == 1
    store.delete(backups.place, stored.path)
    with pytest.raises(DamagedBackup, match="is missing"):
        backups.restore(third, bootstrap, RestoreRequest(prefix="never."))


@pytest.mark.timeout(300)
def test_a_file_says_where_and_what(
    ottla_broker: RunningBroker,
    access: dict[str, Any],
    bucket: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = unique("s3-file")
    create_topic(ottla_broker.bootstrap, topic)
    send(ottla_broker.bootstrap, topic, range(20))
    monkeypatch.setenv("S3_SECRET", access["secret_key"])
    keys = f'endpoint: "{access["endpoint"]}", access_key: ann, secret_key: "${{env:S3_SECRET}}"'
    file = tmp_path / "backup.yaml"
    file.write_text(
        f"to: s3://{bucket}/kafka\ns3: {{{keys}}}\nbootstrap: {ottla_broker.bootstrap}\n"
        f'topics: "{topic}"\nformat: raw\nkeep: 1\n'
    )
    for expected in (20, 25):
        assert main(["backup", "run", str(file), "--json"]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["records"] == expected
        send(ottla_broker.bootstrap, topic, range(5))
    assert main(["backup", "list", str(file), "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["backups"]
    assert (only["topics"], only["format"]) == ([topic], "raw")
    assert main(["backup", "verify", str(file)]) == 0
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", access["access_key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", access["secret_key"])
    capsys.readouterr()
    assert main(["backup", "list", f"s3://{bucket}/kafka", "--s3-endpoint", access["endpoint"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["backups"] == [only]
    file.write_text("to: x\nevery: soon\nfromat: raw\n")
    assert main(["backup", "run", str(file)]) == 1
    assert "has no key `fromat`: did you mean `format`?" in capsys.readouterr().err.replace(";", ":")
