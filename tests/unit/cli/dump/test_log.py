"""dump-log on files that Apache Kafka 4.3.1 wrote, against what its own tool prints for them."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.main import main
from ottla.protocol.records import NewRecord, encode_batch
from ottla.protocol.transaction_records import (
    TransactionState,
    TransactionValue,
    encode_transaction_key,
    encode_transaction_value,
)

# Two records from kafka-console-producer: headers h1, h2 and key k1; header h3 with a null value and no key.
LOG = bytes.fromhex(
    "0000000000000000000000550000000002ced3bee5000000000001000001a1e0f59424000001a1e0f5943500000000000000000000"
    "00000000000000022c000000046b310476310404683104763104683204763218002202010476320204683301"
)
TIME_INDEX = bytes.fromhex("000001a1e0f5943500000001")
SNAPSHOT = bytes.fromhex(
    "00010fe57fe2000000010000000000000000000000000001000000000000000100000001000001a1e0f59435ffffffffffffffffffffffff"
)
BATCH_LINE = (
    "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 0 lastSequence: 1 producerId: 0 producerEpoch: 0 "
    "partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 1794775553077 size: 97 magic: 2 compresscodec: none crc: 3469983461 isvalid: true"
)
RECORD_LINES = [
    "| offset: 0 CreateTime: 1794775553060 keySize: 2 valueSize: 2 sequence: 0 headerKeys: [h1,h2]",
    "| offset: 1 CreateTime: 1794775553077 keySize: -1 valueSize: 2 sequence: 1 headerKeys: [h3]",
]
# A committed offset in __consumer_offsets.
OFFSETS_LOG = bytes.fromhex(
    "0000000000000000000000870000000002e3e21b9e000000000000000001a1e0f5ec79000001a1e0f5ec79ffffffffffffffffffff00"
    "00000000000001a8010000004800010018746573742d67726f75702d313739343737353537343631310002743300000000540004000000"
    "00000005e60000000001000001a1e0f5ec79010010971d1d926d254e55a251d29cc57a614300"
)
# A group with one member in __consumer_offsets.
GROUP_LOG = bytes.fromhex(
    "000000000000000000000143" "0000000002e94a325a000000000000000001a1e0f59c32000001a1e0f59c32ffffffffffffffffffff00"
    "00000000000001a0040000003400020016636f6e736f6c652d636f6e73756d65722d3634383638de0300030008636f6e73756d65720000"
    "0001000572616e67650035636f6e736f6c652d636f6e73756d65722d31323735643932302d636231342d343237392d623661372d613035"
    "633361333636343461000001a1e0f59c04000000010035636f6e736f6c652d636f6e73756d65722d31323735643932302d636231342d34"
    "3237392d623661372d613035633361333636343461ffff0010636f6e736f6c652d636f6e73756d6572000a2f3132372e302e302e310004"
    "93e00000afc80000001800030000000100027431ffffffff00000000ffffffffffff00000016000300000001000274310000000100000000"
    "ffffffff00"
)  # fmt: skip
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(LOG)
    path.with_suffix(".timeindex").write_bytes(TIME_INDEX)
    path.with_suffix(".index").write_bytes(b"")
    return path


def dump(*arguments: str | Path) -> int:
    return main(["dump-log", *map(str, arguments)])


def test_batches_as_apaches_tool_prints_them(segment: Path, capsys: Captured) -> None:
    assert dump("--files", segment) == 0
    assert capsys.readouterr().out.splitlines() == [f"Dumping {segment}", "Log starting offset: 0", BATCH_LINE]


def test_records_and_their_contents(segment: Path, capsys: Captured) -> None:
    assert dump("--deep-iteration", f"--files={segment}") == 0
    assert capsys.readouterr().out.splitlines()[3:] == RECORD_LINES
    assert dump("--print-data-log", "--files", segment) == 0
    shown = capsys.readouterr().out.splitlines()[3:]
    assert shown == [RECORD_LINES[0] + " key: k1 payload: v1", RECORD_LINES[1] + " payload: v2"]
    assert dump("--print-data-log", "--skip-record-metadata", "--files", segment) == 0
    assert capsys.readouterr().out.splitlines()[3:] == ["| key: k1 payload: v1", "| payload: v2"]


def test_decoder_classes(segment: Path, capsys: Captured) -> None:
    assert dump("--value-decoder-class", "org.apache.kafka.tools.api.DefaultDecoder", "--files", segment) == 0
    assert capsys.readouterr().out.splitlines()[3].endswith("key: k1 payload: 7631")
    assert dump("--value-decoder-class", "com.acme.Decoder", "--files", segment) == 1
    assert "there is no decoder com.acme.Decoder" in capsys.readouterr().err


def test_producer_snapshot_and_time_index(segment: Path, capsys: Captured) -> None:
    snapshot = segment.with_name("00000000000000000002.snapshot")
    snapshot.write_bytes(SNAPSHOT)
    assert dump("--files", f"{snapshot},{segment.with_suffix('.timeindex')}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        "producerId: 0 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: OptionalLong.empty "
        "lastTimestamp: 1794775553077 firstSequence: 0 lastSequence: 1 lastOffset: 1 offsetDelta: 1 "
        "timestamp: 1794775553077"
    )
    assert lines[3] == "timestamp: 1794775553077 offset: 1"


def test_committed_offsets(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(OFFSETS_LOG)
    assert dump("--offsets-decoder", "--files", path) == 0
    assert capsys.readouterr().out.splitlines()[3] == (
        "| offset: 0 CreateTime: 1794775575673 keySize: 36 valueSize: 42 sequence: 0 headerKeys: [] "
        'key: {"type":"1","data":{"group":"test-group-1794775574611","topic":"t3","partition":0}} '
        'payload: {"version":"4","data":{"offset":1510,"leaderEpoch":0,"metadata":"",'
        '"commitTimestamp":1794775575673,"topicId":"lx0dkm0lTlWiUdKcxXphQw"}}'
    )


def test_group_members_are_taken_apart(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(GROUP_LOG)
    assert dump("--offsets-decoder", "--files", path) == 0
    line = capsys.readouterr().out.splitlines()[3]
    assert (
        '"subscription":{"topics":["t1"],"userData":null,"ownedPartitions":[],"generationId":-1,"rackId":null},'
        '"assignment":{"assignedPartitions":[{"topic":"t1","partitions":[0]}],"userData":null}'
    ) in line


def test_the_transaction_log_is_decoded(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "00000000000000000000.log"
    key = encode_transaction_key("x")
    value = encode_transaction_value(TransactionValue(7, 0, 1000, TransactionState.COMPLETE_ABORT, updated_ms=9))
    records = [
        NewRecord(key, value, 9),
        NewRecord(key, None, 9),
        NewRecord(b"\x00\x05", b"", 9),
        NewRecord(key, b"", 9),
    ]
    path.write_bytes(encode_batch(records))
    assert dump("--transaction-log-decoder", "--files", path) == 0
    decoded, deleted, unknown, broken = capsys.readouterr().out.splitlines()[3:]
    assert decoded.endswith(
        'key: {"type":"0","data":{"transactionalId":"x"}} payload: {"version":"1","data":{"producerId":7,'
        '"producerEpoch":0,"transactionTimeoutMs":1000,"transactionStatus":5,"transactionPartitions":[],'
        '"transactionLastUpdateTimestampMs":9,"transactionStartTimestampMs":-1}}'
    )
    assert deleted.endswith("payload: <DELETE>")
    assert "Unknown record type 5 at offset 2, skipping." in unknown
    assert "Error at offset 3, skipping." in broken


def batches(count: int) -> tuple[bytes, list[int]]:
    parts = [encode_batch([NewRecord(None, b"x" * 40, 100 + n)], base_offset=n) for n in range(count)]
    positions = [sum(map(len, parts[:n])) for n in range(count)]
    return b"".join(parts), positions


def test_index_entries_are_compared_with_the_log(tmp_path: Path, capsys: Captured) -> None:
    content, positions = batches(3)
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(content)
    index = log.with_suffix(".index")
    index.write_bytes(struct.pack(">iiii", 1, positions[1], 2, positions[2]) + bytes(16))
    assert dump("--files", index) == 0
    entries = [f"offset: 1 position: {positions[1]}", f"offset: 2 position: {positions[2]}"]
    assert capsys.readouterr().out.splitlines()[1:] == entries
    assert dump("--verify-index-only", "--files", index) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    index.write_bytes(struct.pack(">ii", 5, positions[1]))
    assert dump("--verify-index-only", "--files", index) == 1
    assert "Index offset: 5, log offset: 1" in capsys.readouterr().err


def test_index_sanity_check(tmp_path: Path, capsys: Captured) -> None:
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(struct.pack(">iiii", 1, 10, 2, 20))
    assert dump("--index-sanity-check", "--files", index) == 0
    assert capsys.readouterr().out.splitlines()[1] == f"{index} passed sanity check."
    index.write_bytes(struct.pack(">iiii", 2, 10, 1, 20))
    assert dump("--index-sanity-check", "--files", index) == 1
    index.write_bytes(bytes(7))
    assert dump("--index-sanity-check", "--files", index) == 1
    assert "no whole number of entries" in capsys.readouterr().err


def test_time_index_problems_are_named(segment: Path, capsys: Captured) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(struct.pack(">qi", 1, 1) + struct.pack(">qi", 9, 7))
    assert dump("--files", index) == 1
    errors = capsys.readouterr().err
    assert "Index timestamp: 1, log timestamp: 1794775553077" in errors
    assert "Indexed offset: 7, found log offset: -1" in errors


def test_a_torn_tail_is_reported(segment: Path, capsys: Captured) -> None:
    segment.write_bytes(LOG + LOG[:50])
    assert dump("--files", segment) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "Found 50 invalid bytes at the end of 00000000000000000000.log"


def test_a_wrong_crc_is_reported(segment: Path, capsys: Captured) -> None:
    segment.write_bytes(LOG[:-1] + b"\x05")
    assert dump("--files", segment) == 1
    assert capsys.readouterr().out.splitlines()[2].endswith("isvalid: false")


def test_a_control_record_tells_how_the_transaction_ended(tmp_path: Path, capsys: Captured) -> None:
    marker = NewRecord(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 6), 1)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(encode_batch([marker], control=True, transactional=True, producer_id=3, producer_epoch=0))
    assert dump("--print-data-log", "--files", path) == 0
    assert capsys.readouterr().out.splitlines()[3].endswith("endTxnMarker: COMMIT coordinatorEpoch: 6")


def test_transaction_index(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(struct.pack(">hqqqq", 0, 7, 10, 20, 15))
    assert dump("--files", path) == 0
    line = "version: 0 producerId: 7 firstOffset: 10 lastOffset: 20 lastStableOffset: 15"
    assert capsys.readouterr().out.splitlines()[1] == line
    path.write_bytes(path.read_bytes() + b"abc")
    assert dump("--files", path) == 1


@pytest.mark.parametrize(
    "option",
    ["cluster-metadata-decoder", "remote-log-metadata-decoder", "share-group-state-decoder"],
)
def test_decoders_without_anything_to_decode_are_refused(option: str, segment: Path, capsys: Captured) -> None:
    assert dump(f"--{option}", "--files", segment) == 1
    assert f"--{option} has nothing to decode" in capsys.readouterr().err


def test_files_that_cannot_be_dumped(tmp_path: Path, capsys: Captured) -> None:
    assert dump("--files", tmp_path / "00000000000000000000.log") == 1
    assert "No such file" in capsys.readouterr().err
    assert dump("--files", tmp_path / "notes.log") == 1
    assert "no number" in capsys.readouterr().err
    other = tmp_path / "partition.metadata"
    assert dump("--files", other) == 0
    assert capsys.readouterr().err == f"Ignoring unknown file {other}\n"


@settings(max_examples=300, deadline=None)
@given(
    suffix=st.sampled_from(["log", "index", "timeindex", "snapshot", "txnindex"]),
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6),
    length=st.integers(0, 400),
    options=st.sampled_from([[], ["--print-data-log"], ["--offsets-decoder"], ["--index-sanity-check"]]),
)
def test_damaged_files_never_raise(
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    edits: list[tuple[int, int]],
    length: int,
    options: list[str],
) -> None:
    originals = {"log": OFFSETS_LOG + LOG, "snapshot": SNAPSHOT}
    content = bytearray(originals.get(suffix, TIME_INDEX * 12)[:length])
    for position, value in edits:
        if content:
            content[position % len(content)] = value
    folder = tmp_path_factory.mktemp("damaged", numbered=True)
    (folder / "00000000000000000000.log").write_bytes(LOG)
    path = folder / f"00000000000000000000.{suffix}"
    path.write_bytes(content)
    assert dump(*options, "--files", path) in (0, 1)
