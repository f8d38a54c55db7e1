"""128-bit digests of many keys at once.

Four independent multilinear hashes of 32 bits each: a random 64-bit factor for every 32-bit word of the key, the
products summed modulo 2^64, the upper half taken. For any two different keys the chance that one such hash agrees is
2^-32 over the choice of the factors, so 2^-128 for the four together. The factors are drawn anew for every cleaning and
never leave the process, so nobody can prepare keys that collide, which is what MD5 is good for in Kafka's map.
"""

import hashlib
import os

import numpy as np
import numpy.typing as npt

from ottla.broker.storage.compaction.batches import Bytes, Longs

Words = npt.NDArray[np.uint64]

HASHES = 4
WORD_BYTES = 4
# Longer keys are rare; a hash function of the standard library takes them one by one.
VECTOR_KEY_BYTES_MAX = 256
_WORDS_MAX = VECTOR_KEY_BYTES_MAX // WORD_BYTES
_HALF = np.uint64(32)


class Digester:
    def __init__(self, secret: bytes | None = None) -> None:
        """`secret` makes the digests repeatable, for tests."""
        if secret is None:
            self._secret = os.urandom(32)
        else:
            self._secret = hashlib.blake2b(secret, digest_size=32).digest()
        wanted = HASHES * (_WORDS_MAX + 2)
        stream = hashlib.shake_256(self._secret).digest(wanted * 8)
        self._factors = np.frombuffer(stream, np.uint64).reshape(HASHES, _WORDS_MAX + 2)

    def digest(self, data: Bytes, starts: Longs, lengths: Longs) -> tuple[Words, Words]:
        """Both halves of the digest of each key. `data` has padding behind the last key."""
        sums = [lengths.astype(np.uint64) * factors[0] + factors[1] for factors in self._factors]
        longest = min(int(lengths.max(initial=0)), VECTOR_KEY_BYTES_MAX)
        if longest:
            # Every position seen as the beginning of a word, so that taking a word is one load.
            words = np.ndarray((len(data) - WORD_BYTES + 1,), "<u4", data.data, strides=(1,))
            last = len(words) - 1
            shortest = int(lengths.min())
            for number in range((longest + WORD_BYTES - 1) // WORD_BYTES):
                begin = number * WORD_BYTES
                word = words[np.minimum(starts + begin, last)].astype(np.uint64)
                if begin + WORD_BYTES > shortest:
                    present = np.clip(lengths - begin, 0, WORD_BYTES).astype(np.uint64)
                    word &= (np.uint64(1) << (present * np.uint64(8))) - np.uint64(1)
                for hashed, factors in enumerate(self._factors):
                    sums[hashed] += word * factors[number + 2]
        high = (sums[0] & ~np.uint64(0xFFFF_FFFF)) | (sums[1] >> _HALF)
        low = (sums[2] & ~np.uint64(0xFFFF_FFFF)) | (sums[3] >> _HALF)
        for number in np.flatnonzero(lengths > VECTOR_KEY_BYTES_MAX).tolist():
            key = data[starts[number] : starts[number] + lengths[number]].tobytes()
            digest = hashlib.blake2b(key, digest_size=16, key=self._secret).digest()
            high[number] = int.from_bytes(digest[:8], "little")
            low[number] = int.from_bytes(digest[8:], "little")
        return high, low
