"""Delegation tokens as documents, laid out as Kafka did in ZooKeeper. Pure.

/delegation_token/tokens/<id>    whose it is, who may renew it, and until when; never what is shown to log in
"""

import logging
from collections.abc import Mapping
from urllib.parse import quote, unquote

import msgspec
from immutables import Map
from msgspec import Struct

TOKENS = "/delegation_token/tokens/"


class DelegationToken(Struct, frozen=True, rename="camel"):
    """Times are milliseconds since 1970; principals are as in `User:alice`."""

    owner: str
    token_requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    token_id: str
    version: int = 3


logger = logging.getLogger(__name__)

_decode = msgspec.json.Decoder(DelegationToken).decode

Tokens = Mapping[str, DelegationToken]


def token_path(token_id: str) -> str:
    return TOKENS + quote(token_id, safe="")


def token_document(token: DelegationToken) -> bytes:
    return msgspec.json.encode(token)


def apply_token_documents(tokens: Tokens, edits: Mapping[str, bytes | None]) -> Tokens:
    """After these documents, by path, were written (None: deleted)."""
    if not edits:
        return tokens
    mutation = (tokens if isinstance(tokens, Map) else Map(tokens)).mutate()
    for path, data in edits.items():
        token_id = unquote(path.removeprefix(TOKENS))
        mutation.pop(token_id, None)
        if data is not None:
            try:
                mutation[token_id] = _decode(data)
            except msgspec.DecodeError as error:
                logger.error("The delegation token at %s cannot be read and counts as none: %s", path, error)  # noqa: TRY400
    return mutation.finish()
