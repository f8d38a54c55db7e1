"""Messages of leader_change_message. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar
from uuid import UUID

from msgspec import field

from ottla.protocol.schema import NO_UUID, Field, Message, TopLevel


class Voter(Message):
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("voter_id", "int32", 0),
        Field("voter_directory_id", "uuid", 1),
    )
    voter_id: int = 0
    voter_directory_id: UUID = NO_UUID


class LeaderChangeMessage(TopLevel):
    NAME: ClassVar[str] = "LeaderChangeMessage"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 1
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "int16", 0),
        Field("leader_id", "int32", 0),
        Field("voters", Voter, 0, array=True),
        Field("granting_voters", Voter, 0, array=True),
    )
    version: int = 0
    leader_id: int = 0
    voters: list[Voter] = field(default_factory=list[Voter])
    granting_voters: list[Voter] = field(default_factory=list[Voter])
