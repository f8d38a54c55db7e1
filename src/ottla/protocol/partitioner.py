"""Which partition a key belongs to, as Kafka's clients agree: the partitioner of Java's client."""

_SEED, _MULTIPLIER, _SHIFT = 0x9747B28C, 0x5BD1E995, 24
_UINT32 = 0xFFFFFFFF


def murmur2(key: bytes) -> int:
    """Murmur 2 with the seed that Kafka's clients share, as an unsigned number of 32 bits."""
    length = len(key)
    digest = _SEED ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _UINT32
        word = (word ^ word >> _SHIFT) * _MULTIPLIER & _UINT32
        digest = digest * _MULTIPLIER & _UINT32 ^ word
    if rest := key[whole:]:
        digest = (digest ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _UINT32
    digest = (digest ^ digest >> 13) * _MULTIPLIER & _UINT32
    return digest ^ digest >> 15


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
