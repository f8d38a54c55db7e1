"""What a view gets and gives: a request that was let in, and a document that a page and a JSON answer are made from."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request

from ottla.console import snapshot as snapshots
from ottla.console.clusters import WatchedCluster
from ottla.console.snapshot import Snapshot
from ottla.model.errors import OttlaError

if TYPE_CHECKING:
    from ottla.console.access.masking import Mask
    from ottla.console.app import Console

FIELDS_MAX = 2000


class BadInput(OttlaError):
    """A field that is missing or cannot be understood; the message says what to write."""


class NotThere(OttlaError):
    """There is no such thing, or there is none any more."""


class Right(IntEnum):
    """What a caller may do; each may do what those before it may."""

    VIEWER = 1
    OPERATOR = 2
    """Changes data: topics, offsets, records, partitions' places."""
    ADMIN = 3
    """Changes who may do what: ACLs, users, quotas; and settings of brokers; promotes standbys, starts pipelines."""


class Caller(Protocol):
    """Who asks, as the gate let them in."""

    @property
    def name(self) -> str: ...
    @property
    def right(self) -> Right: ...
    @property
    def csrf(self) -> str:
        """What a form of this caller carries, so that no other site can send it."""

    @property
    def login(self) -> Mapping[str, str] | None:
        """Settings of the caller's own connection to brokers; None: the console's."""

    @property
    def way(self) -> str:
        """How they came in; `open` where nobody has to sign in."""

    @property
    def sees_everything(self) -> bool: ...

    def sees(self, topic: str) -> bool:
        """Others are not there for this caller."""

    def mask(self, topic: str) -> "Mask | None":
        """What of a topic's records is hidden from this caller; None: nothing."""


class Fields:
    """Of a query, a form or a JSON body: texts by name, some of them several times."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = list(pairs)
        self._first: dict[str, str] = {}
        for name, value in self.pairs:
            self._first.setdefault(name, value)

    def get(self, name: str, default: str = "") -> str:
        return self._first.get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.pairs if each == name]

    def mapping(self) -> dict[str, str]:
        return dict(self._first)

    def need(self, name: str, words: str = "") -> str:
        found = self.get(name).strip()
        if not found:
            raise BadInput(f"{words or name} is missing")
        return found

    def integer(self, name: str, default: int | None = None, *, least: int | None = None) -> int:
        text = self.get(name).strip()
        if not text and default is not None:
            return default
        try:
            found = int(text)
        except ValueError:
            raise BadInput(f"{name} wants a whole number, not `{text}`") from None
        if least is not None and found < least:
            raise BadInput(f"{name} wants {least} or more, not {found}")
        return found

    def confirmed(self, name: str, what: str) -> None:
        """Dangerous things ask for the name of what they are done to, typed."""
        if self.get("confirm") != name:
            raise BadInput(f"to {what}, type its name: {name}")


async def read_fields(request: Request) -> Fields:
    if request.method in ("GET", "HEAD"):
        return Fields(request.query_params.multi_items())
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    pairs = list(request.query_params.multi_items())
    if kind == "application/json":
        return Fields([*_from_json(body), *pairs])
    try:
        form = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
    except ValueError:
        raise BadInput("the body is neither a form nor JSON") from None
    return Fields([*form, *pairs])


def _from_json(body: bytes) -> list[tuple[str, str]]:
    try:
        document = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise BadInput("the body is not JSON") from None
    if not isinstance(document, dict):
        raise BadInput("the body wants a JSON object: names and values")
    pairs: list[tuple[str, str]] = []
    for name, value in document.items():
        several = value if isinstance(value, list) else [value]
        pairs += [(name, each if isinstance(each, str) else json.dumps(each)) for each in several if each is not None]
    return pairs


@dataclass(frozen=True)
class Ask:
    """One request that was let in."""

    console: "Console"
    watched: WatchedCluster
    caller: Caller
    names: Mapping[str, str]
    """The parts of the path."""
    fields: Fields
    path: str = ""
    for_page: bool = True
    """Whether a page is made of it, and no JSON."""

    @property
    def base(self) -> str:
        return f"/c/{quote(self.watched.name, safe='')}"

    async def snapshot(self) -> Snapshot:
        """What the caller may see of the cluster."""
        found = await self.watched.snapshot()
        return found if self.caller.sees_everything else snapshots.only(found, self.caller.sees)

    def link(self, path: str, **query: object) -> str:
        """Of a page of this cluster."""
        return with_query(self.base + path, query)

    def again(self, **query: object) -> str:
        """This page with some fields changed; None takes one away."""
        own = {name: value for name, value in self.fields.mapping().items() if name not in ("said", "seal")}
        return with_query("", {**own, **query}) or "?"


def with_query(path: str, query: Mapping[str, object]) -> str:
    kept = {name: str(value) for name, value in query.items() if value is not None and value != ""}
    return f"{path}?{urlencode(kept)}" if kept else path


@dataclass(frozen=True)
class Done:
    """What was changed, in words; a browser is then sent `to` a page."""

    words: str
    to: str
    document: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""
    """What it was done to, for the audit log."""
