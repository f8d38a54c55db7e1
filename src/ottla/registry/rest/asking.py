"""A request to the registry, and the pieces that answers are made of."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from ottla.registry.content import check_encodable
from ottla.registry.errors import RegistryError
from ottla.registry.records import RegistryRecord
from ottla.registry.service import Registry
from ottla.registry.state import GLOBAL, Version
from ottla.registry.subjects import DEFAULT_CONTEXT, context_of, in_context

T = TypeVar("T")

_NOT_A_LIMIT = -1


class Text(NamedTuple):
    """An answer that is a schema's text and not a JSON document about it."""

    text: str


class Parts(NamedTuple):
    """An answer to several questions, each of which has a status of its own."""

    document: Any


class Asked:
    """`params` are the parts of the path; `context` comes from /contexts/{c} before it."""

    def __init__(self, request: Request, registry: Registry, params: dict[str, str], context: str | None) -> None:
        self.request = request
        self.registry = registry
        self.params = params
        self.context = context
        self._body: Any = None

    @property
    def subject(self) -> str:
        """With its context, and behind its alias."""
        return self.registry.state.alias(self.own_subject)

    @property
    def own_subject(self) -> str:
        """As it was named: settings are those of the alias itself."""
        if "subject" not in self.params:
            return GLOBAL if self.context in (None, DEFAULT_CONTEXT) else f":{self.context}:"
        return in_context(self.context, self.params["subject"])

    @property
    def id_context(self) -> str:
        """Where an id is meant to be: `?subject=` names it, or the path."""
        named = self.request.query_params.get("subject")
        if named:
            return context_of(in_context(self.context, named))
        return self.context or DEFAULT_CONTEXT

    def flag(self, name: str) -> bool:
        """Clients write true, True and 1."""
        return self.request.query_params.get(name, "").lower() in ("true", "1")

    def number(self, name: str, default: int) -> int:
        text = self.request.query_params.get(name)
        if text is None:
            return default
        try:
            return int(text)
        except ValueError:
            raise RegistryError(400, f"{name} is a number, not `{text[:50]}`") from None

    def text(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def texts(self, name: str) -> list[str]:
        return self.request.query_params.getlist(name)

    def page(self, items: Sequence[T], limit_default: int = _NOT_A_LIMIT) -> list[T]:
        """`offset` and `limit`; a negative limit is none."""
        offset, limit = max(self.number("offset", 0), 0), self.number("limit", limit_default)
        if limit < 0 or (limit_default >= 0 and limit > limit_default):
            limit = limit_default
        return list(items[offset:] if limit < 0 else items[offset : offset + limit])

    async def body(self) -> dict[str, Any]:
        if self._body is None:
            raw = await self.request.body()
            try:
                self._body = json.loads(raw or b"{}")
            except (ValueError, RecursionError) as error:
                raise RegistryError(400, f"the body is not JSON: {error}") from None
            if not isinstance(self._body, dict):
                raise RegistryError(400, "the body is a JSON object")
            check_encodable(self._body)
        found: dict[str, Any] = self._body
        return found

    async def write(self, decide: Callable[[], tuple[T, Sequence[RegistryRecord]]]) -> T:
        return await self.registry.write(decide)


Handler = Callable[[Asked], Awaitable[Any]]


async def formatted(asked: Asked, version: Version) -> str:
    """The text of a version in the form that `?format=` asks for."""
    form = asked.text("format")
    if not form:
        return version.content.text
    parsed = await asked.registry.parse(version.content, context_of(version.subject))
    return await asked.registry.in_thread(lambda: parsed.formatted(form))
