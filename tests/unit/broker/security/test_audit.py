"""The audit log: its lines, its files, and what happens when the disk does not keep up."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.security.access_control import AccessControl
from ottla.broker.security.acls.authorizer import Decision
from ottla.broker.security.audit import AuditLog
from ottla.broker.session import Principal, Session
from ottla.cluster.image import ClusterImage
from ottla.config.access import AUTHORIZERS
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.model.acls import AclEntry, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import ApiKey
from ottla.security import rolled_lines as module
from ottla.telemetry import catalogue
from ottla.telemetry.registry import Telemetry


def session() -> Session:
    made = Session("INSIDE", "10.0.0.1")
    made.authenticated(Principal("User", "alice"))
    made.called("app")
    return made


def decision(name: str = "orders") -> Decision:
    return Decision(session(), ApiKey.PRODUCE, Operation.WRITE, Resource.TOPIC, name, False, "DefaultDeny", 2, False)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_says_who_from_where_what_on_what_and_why(tmp_path: Path) -> None:
    log = AuditLog(str(tmp_path / "audit.log"), 10_000, 1, now=lambda: 1_700_000_000.25)
    log.note(decision("orders\n"))
    log.close()
    assert lines(tmp_path / "audit.log") == [
        {
            "time": "2023-11-14T22:13:20.250Z", "principal": "User:alice", "host": "10.0.0.1", "listener": "INSIDE",
            "clientId": "app", "request": "Produce", "operation": "Write", "resourceType": "Topic",
            "resourceName": "orders\n", "decision": "denied", "rule": "DefaultDeny", "count": 2,
        }
    ]  # fmt: skip


def test_what_settings_ask_for_is_what_is_written(tmp_path: Path) -> None:
    rules = {ResourcePattern(Resource.TOPIC, "a"): (AclEntry("User:alice", "*", Operation.WRITE, Permission.ALLOW),)}
    for allowed, expected in (("false", ["b"]), ("true", ["a", "b"])):
        path, telemetry = tmp_path / f"{allowed}.log", Telemetry()
        given = {"authorizer.class.name": AUTHORIZERS[1], "audit.log.file": str(path), "audit.log.allowed": allowed}
        control = AccessControl(LiveConfig(settings_from({"log.dirs": str(tmp_path), **given})), telemetry)
        control.load(ClusterImage(acls=rules))
        assert control.authorizer is not None
        for name in "ab":
            control.authorizer.allows(session(), ApiKey.PRODUCE, Operation.WRITE, Resource.TOPIC, name)
        control.authorizer.operations(session(), ApiKey.METADATA, Resource.TOPIC, "a")  # nobody asked for these by name
        control.close()
        assert [line["resourceName"] for line in lines(path)] == expected
        assert [(sample.metric, sample.value) for sample in telemetry.snapshot()] == [(catalogue.AUDIT_DROPPED, 0)]
    assert "principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW" in lines(path)[0]["rule"]


def test_files_are_rolled_and_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE_MAX", 1)
    path = tmp_path / "audit.log"
    log = AuditLog(str(path), 700, 2)
    for number in range(12):
        log.note(decision(f"t{number}"))
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    kept = [
        line["resourceName"] for name in ("audit.log.2", "audit.log.1", "audit.log") for line in lines(tmp_path / name)
    ]
    assert kept == [f"t{number}" for number in range(12)][-len(kept) :]
    assert all(file.stat().st_size <= 700 for file in tmp_path.iterdir())


def test_without_backups_a_full_log_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AT_ONCE_MAX", 1)
    log = AuditLog(str(tmp_path / "audit.log"), 700, 0)
    for number in range(6):
        log.note(decision(f"t{number}"))
    log.close()
    assert [file.name for file in tmp_path.iterdir()] == ["audit.log"]


def test_a_slow_disk_holds_nobody_up_and_what_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, gate, began = tmp_path / "audit.log", threading.Event(), threading.Event()
    log = AuditLog(str(path), 100_000, 1, room=2)
    write = log.lines._write

    def slow(entries: list[Any]) -> None:
        began.set()
        assert gate.wait(30)
        write(entries)

    monkeypatch.setattr(log.lines, "_write", slow)
    log.note(decision("first"))
    assert began.wait(30)
    for number in range(5):
        log.note(decision(f"t{number}"))
    assert log.dropped == 3
    gate.set()
    log.close()
    found = lines(path)
    assert [line.get("resourceName") for line in found if "dropped" not in line] == ["first", "t0", "t1"]
    assert sum(line["dropped"] for line in found if "dropped" in line) == 3


def test_a_disk_that_fails_is_complained_of_once_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = AuditLog(str(tmp_path / "nowhere" / "audit.log"), 10_000, 1)
    for _ in range(3):
        log.note(decision())
    log.close()
    assert log.dropped == 3
    assert len([record for record in caplog.records if "Cannot write the audit log" in record.message]) == 1
