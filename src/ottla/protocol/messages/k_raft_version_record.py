"""Messages of k_raft_version_record. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class KRaftVersionRecord(TopLevel):
    NAME: ClassVar[str] = "KRaftVersionRecord"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", 0),
        Field("k_raft_version", "int16", 0),
    )
    version: int = 0
    k_raft_version: int = 0
