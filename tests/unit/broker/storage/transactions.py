"""What the tests of transactions share: sending, ending, and reading as a consumer of committed records does."""

from tests.unit.broker.storage.conftest import NOW_MS, batch

from ottla.broker.storage.log import AppendResult, Log
from ottla.broker.storage.markers import Marker, read_marker
from ottla.model.errors import ApiError, ErrorCode
from ottla.protocol.records import decode_batch, iterate_batches


def send(
    log: Log, producer_id: int, sequence: int, *values: bytes, epoch: int = 0, transactional: bool = True
) -> AppendResult:
    records = batch(
        *(values or (b"v",)), producer_id=producer_id, producer_epoch=epoch, sequence=sequence,
        transactional=transactional,
    )  # fmt: skip
    return log.append_as_leader(records, 0, NOW_MS)


def end(
    log: Log, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0, version: int = 1
) -> AppendResult:
    return log.append_marker(
        producer_id, epoch, Marker(commit, coordinator_epoch), 0, NOW_MS, transaction_version=version
    )


def commit(log: Log, producer_id: int, epoch: int = 0) -> AppendResult:
    return end(log, producer_id, commit=True, epoch=epoch)


def abort(log: Log, producer_id: int, epoch: int = 0) -> AppendResult:
    return end(log, producer_id, commit=False, epoch=epoch)


def refusal(log: Log, producer_id: int, **marker: int) -> ErrorCode:
    """Why a marker is refused; the log must not have grown."""
    before = log.end_offset
    try:
        end(log, producer_id, commit=True, **marker)
    except ApiError as error:
        assert log.end_offset == before
        return error.code
    raise AssertionError("the marker was taken")


def read_committed(log: Log, offset: int | None = None, *, max_bytes: int = 400) -> list[bytes | None]:
    """The values that a consumer with isolation.level=read_committed puts together, fetch by fetch."""
    found: list[bytes | None] = []
    next_offset = log.start_offset if offset is None else offset
    limit = log.first_unstable_offset
    while next_offset < limit:
        piece, to_skip = log.read_committed(next_offset, max_bytes, limit, min_one_batch=True)
        assert to_skip == sorted(to_skip, key=lambda transaction: transaction.first_offset)
        skipping: set[int] = set()
        data, before = piece.read(), next_offset
        for position, header in iterate_batches(data):
            while to_skip and to_skip[0].first_offset <= header.last_offset:
                skipping.add(to_skip.pop(0).producer_id)
            if header.is_control:
                marker = read_marker(memoryview(data)[position:])
                assert marker is not None
                if not marker.commit:
                    skipping.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipping):
                found += [record.value for record in decode_batch(data, position) if record.offset >= before]
            next_offset = header.next_offset
        assert next_offset > before, "a fetch below the last stable offset brings something"
    return found
