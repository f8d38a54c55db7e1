"""The map against a dictionary, and digests that tell keys apart."""

import random

import numpy as np
import pytest

from ottla.broker.storage.compaction.batches import PADDING_BYTES, Bytes, Longs
from ottla.broker.storage.compaction.digests import VECTOR_KEY_BYTES_MAX, Digester
from ottla.broker.storage.compaction.offset_map import OffsetMap, largest_prime_up_to


def placed(keys: list[bytes]) -> tuple[Bytes, Longs, Longs]:
    lengths = np.array([len(key) for key in keys], np.int64)
    ends = np.cumsum(lengths)
    return np.frombuffer(b"".join(keys) + b"\xff" * PADDING_BYTES, np.uint8), ends - lengths, lengths


@pytest.mark.parametrize("load", [0.1, 0.9, 1.0])
def test_the_map_is_a_dictionary_of_newest_offsets(load: float) -> None:
    chance = random.Random(3)
    digester, newest = Digester(), OffsetMap(2003)
    known: dict[bytes, int] = {}
    pool = [chance.randbytes(chance.randrange(1, 30)) for _ in range(int(newest.slots * load))]
    pool = list(dict.fromkeys(pool))
    offset = 0
    while len(known) < len(pool) - 20:
        keys = [chance.choice(pool) for _ in range(chance.randrange(1, 700))]
        high, low = digester.digest(*placed(keys))
        missing = len(set(keys) - known.keys())
        assert newest.missing(high, low) == missing
        before = newest.size
        newest.put(high, low, np.arange(offset, offset + len(keys)))
        assert newest.size == before + missing
        known |= {key: offset + number for number, key in enumerate(keys)}
        offset += len(keys)
    asked = [*pool, b"", *(chance.randbytes(40) for _ in range(200))]
    assert newest.get(*digester.digest(*placed(asked))).tolist() == [known.get(key, -1) for key in asked]


def test_digests_differ_where_keys_differ() -> None:
    keys = [b"", b"\0", b"\0\0", b"\0" * 5, b"a", b"a\0", b"ab", b"ba", b"abcd", b"abcde", b"abcdefgh", b"abcdefgi"]
    keys += [bytes(VECTOR_KEY_BYTES_MAX), bytes(VECTOR_KEY_BYTES_MAX + 1), bytes(VECTOR_KEY_BYTES_MAX) + b"\1"]
    keys += [b"x" * 1000, b"x" * 999 + b"y"]
    digester = Digester(b"fixed")
    high, low = digester.digest(*placed(keys))
    assert len(set(high.tolist())) == len(keys)
    assert len(set(low.tolist())) == len(keys)


def test_a_digest_depends_on_the_key_alone() -> None:
    digester = Digester()
    keys = [b"key-%d" % number for number in range(300)] + [b"z" * 500]
    together = np.stack(digester.digest(*placed(keys)))
    for number, key in enumerate(keys):
        alone = np.stack(digester.digest(*placed([key])))
        assert (alone[:, 0] == together[:, number]).all()


def test_digests_of_two_cleanings_have_nothing_in_common() -> None:
    keys = placed([b"key-%d" % number for number in range(100)])
    first, second = Digester().digest(*keys), Digester().digest(*keys)
    assert not set(first[0].tolist()) & set(second[0].tolist())


@pytest.mark.parametrize(("number", "prime"), [(1009, 1009), (10, 7), (5_592_405, 5_592_373), (4, 3), (2, 2)])
def test_primes(number: int, prime: int) -> None:
    assert largest_prime_up_to(number) == prime
