"""What values begin with is what decoding them would tell, or nothing is told."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.protocol.record_prefixes import common_prefix
from ottla.protocol.records import NewRecord, decode_records, encode_batch, open_batch

SIZE = 5
beginnings = st.sampled_from([b"\x00\x00\x00\x00\x07", b"\x00\x00\x00\x00\x08", b"\x00\x00", b""])
values = st.one_of(
    st.builds(lambda head, tail: head + tail, beginnings, st.one_of(st.binary(max_size=200), st.just(bytes(9_000)))),
    st.none(),
)
records = st.builds(
    NewRecord,
    st.one_of(st.none(), st.binary(max_size=100)),
    values,
    st.integers(0, 2**40),
    st.one_of(st.just([]), st.just([]), st.just([("h", b"\x00")])),
)
alike = st.builds(NewRecord, st.one_of(st.none(), st.binary(max_size=100)), st.just(bytes(50)), st.integers(0, 2**40))


@given(st.one_of(st.lists(records, min_size=1, max_size=8), st.lists(alike, min_size=1, max_size=8)))
def test_it_is_what_decoding_tells(batch: list[NewRecord]) -> None:
    header, payload = open_batch(encode_batch(batch))
    found = common_prefix(bytes(payload), header.record_count, SIZE)
    decoded = decode_records(payload, header)
    plain = all(each.value is not None and len(each.value) >= SIZE and not each.headers for each in decoded)
    heads = {(each.value or b"")[:SIZE] for each in decoded}
    small = all(len(each.key or b"") + len(each.value or b"") < 8_000 for each in decoded)
    assert found == (heads.pop() if plain and small and len(heads) == 1 else None)


@given(st.binary(max_size=60), st.integers(0, 5))
def test_hostile_bytes_tell_nothing_or_something(payload: bytes, count: int) -> None:
    found = common_prefix(payload, count, SIZE)
    assert found is None or len(found) == SIZE
