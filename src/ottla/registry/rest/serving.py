"""From an HTTP request to a handler and back: paths with encoded subjects, errors as clients know them, forwarding."""

import asyncio
import contextlib
import json
import logging
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ottla.http.application import Served, application
from ottla.model.errors import OttlaError
from ottla.registry.errors import Code, RegistryError
from ottla.registry.rest.asking import Asked, Parts, Text
from ottla.registry.rest.forwarding import FORWARDED, Forwarder
from ottla.registry.rest.rights import NO_RIGHTS, Rights
from ottla.registry.rest.routes import Found, find
from ottla.registry.service import LEADER_SECONDS_MAX, Registry
from ottla.registry.subjects import context_name

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.2
"""Before a writer that does not know yet that it is one is asked again."""
MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_MISSING = {
    Code.SUBJECT_NOT_FOUND, Code.VERSION_NOT_FOUND, Code.SCHEMA_NOT_FOUND, Code.CONFIG_NOT_FOUND, Code.MODE_NOT_FOUND,
}  # fmt: skip


def error_document(status: int, text: str) -> dict[str, Any]:
    return {"error_code": status, "message": text}


def registry_application(registry: Registry, forwarder: Forwarder, rights: Rights = NO_RIGHTS) -> Served:
    serving = _Serving(registry, forwarder, rights)
    route = Route("/{path:path}", serving.answer, methods=["GET", "POST", "PUT", "DELETE"])
    return application([route], error_body=error_document)


class _Serving:
    def __init__(self, registry: Registry, forwarder: Forwarder, rights: Rights) -> None:
        self._registry = registry
        self._forwarder = forwarder
        self._rights = rights

    async def answer(self, request: Request) -> Response:
        try:
            found, asked = self._find(request)
            await self._rights.check(found.path.right, asked)
            if found.path.writes:
                return await self._write(request, found, asked)
            return _response(await self._rights.visible(asked, await self._read(found, asked)))
        except RegistryError as error:
            return _response(error_document(error.code, str(error)), error.status)
        except OttlaError as error:
            logger.warning("%s %s failed: %s", request.method, request.url.path, error)
            return _response(error_document(Code.STORE, f"Error in the backend store: {error}"), 500)

    async def _read(self, found: Found, asked: Asked) -> Any:
        """What is not there may only not have been read yet, where another instance writes."""
        try:
            return await found.path.handler(asked)
        except RegistryError as error:
            if error.code not in _MISSING or self._registry.writes_here:
                raise
        await self._registry.topic.catch_up()
        return await found.path.handler(asked)

    async def _write(self, request: Request, found: Found, asked: Asked) -> Response:
        """By the writer. Instances hear of an election at different moments: who is refused meanwhile asks again."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + LEADER_SECONDS_MAX
        while True:
            writer = await self._registry.known_writer()
            if writer == self._registry.identity:
                return _response(await found.path.handler(asked))
            if FORWARDED in request.headers:
                raise RegistryError(Code.NO_LEADER, "Master not known: this instance was taken for it, and is not")
            answer = await self._forward(request, writer.url)
            if clock() > deadline or not _refused_by_no_writer(answer):
                return answer
            await self._registry.next_writer(PAUSE_SECONDS)

    async def _forward(self, request: Request, url: str) -> Response:
        status, headers, body = await self._forwarder.forward(url, request)
        await self._registry.topic.catch_up()  # who asks here next finds what was written there
        return Response(body, status, media_type=headers.get("content-type", MEDIA_TYPE))

    def _find(self, request: Request) -> tuple[Found, Asked]:
        parts = [unquote(part) for part in request.scope["raw_path"].decode("ascii").split("/") if part]
        context = None
        if len(parts) > 2 and parts[0] == "contexts":
            context, parts = context_name(parts[1]), parts[2:]
        found = find(request.method, parts)
        if not isinstance(found, Found):
            if found:
                raise RegistryError(405, f"HTTP 405 Method Not Allowed: it takes {', '.join(found)}")
            raise RegistryError(404, f"HTTP 404 Not Found: there is no /{'/'.join(parts)[:200]}")
        return found, Asked(request, self._registry, found.params, context)


def _refused_by_no_writer(answer: Response) -> bool:
    if answer.status_code != RegistryError(Code.NO_LEADER, "").status:
        return False
    with contextlib.suppress(ValueError):
        told = json.loads(bytes(answer.body))
        return isinstance(told, dict) and told.get("error_code") == Code.NO_LEADER
    return False


def _response(document: Any, status: int = 200) -> Response:
    if isinstance(document, Text):
        return Response(document.text, status, media_type=MEDIA_TYPE)
    if document is None:
        return Response(status_code=204)
    if isinstance(document, Parts):
        return _response(document.document, 207)
    return Response(json.dumps(document, separators=(",", ":"), ensure_ascii=False), status, media_type=MEDIA_TYPE)
