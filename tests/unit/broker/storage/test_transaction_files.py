"""The files of a log with transactions, as Kafka's own tool shows them.

The lines are what DumpLogSegments of Apache Kafka 4.3.1 printed for exactly these appends.
"""

import pytest
from tests.unit.broker.storage.conftest import LogKit
from tests.unit.broker.storage.transactions import abort, commit, end, send

from ottla.cli.main import main

ABORTED = """\
version: 0 producerId: 7 firstOffset: 0 lastOffset: 2 lastStableOffset: 1
version: 0 producerId: 8 firstOffset: 1 lastOffset: 3 lastStableOffset: 4
"""
PRODUCERS = """\
producerId: 7 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: OptionalLong.empty \
lastTimestamp: 1700000000000 firstSequence: 1 lastSequence: 1 lastOffset: 4 offsetDelta: 0 timestamp: 1700000000000
producerId: 8 producerEpoch: 3 coordinatorEpoch: 5 currentTxnFirstOffset: OptionalLong.empty \
lastTimestamp: 1700000000000
producerId: 9 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong[6] \
lastTimestamp: 1700000000000 firstSequence: 0 lastSequence: 0 lastOffset: 6 offsetDelta: 0 timestamp: 1700000000000
"""
MARKER = """\
baseOffset: 3 lastOffset: 3 count: 1 baseSequence: -1 lastSequence: -1 producerId: 8 producerEpoch: 3 \
partitionLeaderEpoch: 0 isTransactional: true isControl: true deleteHorizonMs: OptionalLong.empty position: 218 \
CreateTime: 1700000000000 size: 78 magic: 2 compresscodec: none crc: 1352597087 isvalid: true
"""


def test_kafkas_tool_and_ours_agree(kit: LogKit, capsys: pytest.CaptureFixture[str]) -> None:
    log = kit.create()
    send(log, 7, 0, b"a")
    send(log, 8, 0, b"b", epoch=2)
    abort(log, 7)
    end(log, 8, commit=False, epoch=3, coordinator_epoch=5, version=2)
    send(log, 7, 1, b"c")
    commit(log, 7)
    send(log, 9, 0, b"open")
    log.close()
    for suffix, lines in ((".txnindex", ABORTED), (".snapshot", PRODUCERS)):
        assert dump(kit, suffix, capsys) == lines
    assert MARKER in dump(kit, ".log", capsys)


def dump(kit: LogKit, suffix: str, capsys: pytest.CaptureFixture[str]) -> str:
    (path,) = kit.files(suffix)
    assert main(["dump-log", "--files", str(path)]) == 0
    return capsys.readouterr().out.removeprefix(f"Dumping {path}\n")


@pytest.mark.parametrize("aborted", [True, False])
def test_aborts_are_on_disk_before_a_stop_counts_as_clean(kit: LogKit, aborted: bool) -> None:
    """A machine that crashes after the stop loses what was not synced, and nothing shows that an abort is missing."""
    log = kit.create()
    send(log, 7, 0, b"a")
    end(log, 7, commit=not aborted)
    log.flush()
    kit.disk.synced_paths.clear()
    log.close()
    synced = kit.disk.synced_paths
    assert any(path.endswith(".txnindex") for path in synced) == aborted
    assert (log.directory in synced) == aborted, "and its name too"
