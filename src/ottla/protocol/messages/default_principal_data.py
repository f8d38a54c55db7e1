"""Messages of default_principal_data. Written by tools/generate_messages.py; do not edit."""

from typing import ClassVar

from ottla.protocol.schema import Field, TopLevel


class DefaultPrincipalData(TopLevel):
    NAME: ClassVar[str] = "DefaultPrincipalData"
    API_KEY: ClassVar[int] = -1
    MIN_VERSION: ClassVar[int] = 0
    MAX_VERSION: ClassVar[int] = 0
    FLEXIBLE_FROM: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("type_", "string", 0),
        Field("name", "string", 0),
        Field("token_authenticated", "bool", 0),
    )
    type_: str = ""
    name: str = ""
    token_authenticated: bool = False
