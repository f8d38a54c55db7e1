"""Raw batches written anew at the offsets that they had: without producers, markers and what was aborted."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.backup.samples import stored
from tests.unit.pipelines.backup.test_batches import ABORTED, LOG

from ottla.pipelines.backup.placing import written_anew
from ottla.protocol.compression import Codec
from ottla.protocol.records import check_crc, decode_batch, iterate_batches

OBJECT = msgspec.structs.replace(stored(0, 14, records=4), kind="raw", aborted=ABORTED)
COMMITTED = [2, 3, 5, 6]


@given(st.integers(0, 14), st.integers(0, 14), st.integers(1, 300))
def test_committed_records_stay_where_they_were(start: int, end: int, size: int) -> None:
    found = []
    for piece in written_anew(b"".join(LOG), OBJECT, (start, end), Codec.NONE, 1_000, size):
        offsets = []
        for position, header in iterate_batches(piece.content):
            check_crc(piece.content, position, header)
            assert (header.producer_id, header.is_transactional, header.is_control) == (-1, False, False)
            offsets += [record.offset for record in decode_batch(piece.content, position)]
        assert (piece.first_offset, piece.records) == (offsets[0], len(offsets))
        found += offsets
    assert found == [offset for offset in COMMITTED if start <= offset < end]
