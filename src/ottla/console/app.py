"""The console as an application: every entry of the table of routes becomes a page and a JSON answer.

Whoever asks passes the gate first, with the right that the entry needs. Errors are told in the form of the question:
a page to a browser, JSON below /api.
"""

import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.staticfiles import StaticFiles

from ottla import __version__
from ottla.client.errors import ClientError
from ottla.client.group_resets import CannotReset
from ottla.console.asking import Ask, BadInput, Caller, Done, NotThere, Right, read_fields, with_query
from ottla.console.clusters import Clusters, Unseen
from ottla.console.listeners import Listeners
from ottla.console.pipeline_status import Pipelines
from ottla.console.registries import Registries
from ottla.console.starting import Starter
from ottla.console.templating import Pages
from ottla.console.tools import Tools
from ottla.http.application import Served, json_answer
from ottla.model.error_words import in_words as broker_words
from ottla.model.errors import ApiError, ErrorCode, OttlaError
from ottla.registry.errors import RegistryError

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent
FRAGMENT_HEADER = "x-ottla-fragment"
API = "/api"
CLUSTER = "/c/{cluster}"

View = Callable[[Ask], Awaitable["dict[str, Any] | Done | Response"]]

_MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_ID)
_FORBIDDEN = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


class Entry(NamedTuple):
    """One thing that is served, below the address of a cluster."""

    method: str
    path: str
    view: View
    summary: str
    template: str | None = None
    """The page it is shown on; None: it has none, or it changes something and sends the browser on."""
    right: Right = Right.VIEWER
    changes: bool = False
    fields: tuple[str, ...] = ()
    """What it takes, for the API's description."""
    raw: bool = False
    """It answers with bytes of its own, such as a stream: the same for a browser and a program."""


class Gate(Protocol):
    """Decides who comes in. Raises HTTPException, or `Elsewhere` to send a browser to a sign-in page."""

    async def admit(self, request: Request, needed: Right, changes: bool) -> Caller: ...

    def routes(self) -> Sequence[BaseRoute]: ...

    def note(self, caller: Caller, request: Request, entry_summary: str, words: str, ok: bool) -> None: ...

    def finish(self, request: Request, response: Response) -> Response: ...

    def close(self) -> None: ...


class Console:
    """Everything that one process serves."""

    def __init__(self, clusters: Clusters, gate: Gate, *, title: str = "Ottla") -> None:
        self.clusters = clusters
        self.gate = gate
        self.title = title
        self.pages = Pages(HERE / "templates")
        self.registries = Registries()
        self.pipelines = Pipelines()
        self.tools = Tools()
        self.listeners = Listeners()
        self.starter = Starter()
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        """Offsets as they were before a reset, by cluster and group: what can be undone."""

        self._key = secrets.token_bytes(32)

    def seal(self, words: str) -> str:
        """What is said at the top of a page comes from here, and not from a link that somebody made up."""
        return hmac.digest(self._key, words.encode("utf-8", "replace"), "sha256").hex()[:32]

    async def close(self) -> None:
        await self.tools.close()
        await self.clusters.close()
        self.registries.close()
        self.gate.close()


def served(console: Console, entries: Sequence[Entry], more: Sequence[BaseRoute] = ()) -> Served:
    """`more` are routes that belong to no cluster, such as the API's description."""
    routes: list[BaseRoute] = [
        Route("/", _to_first_cluster(console)),
        *console.gate.routes(),
        *more,
    ]
    for entry in entries:
        answer = _Answer(console, entry)
        page_path = CLUSTER + entry.path
        if entry.template or entry.changes or entry.raw:
            routes.append(Route(page_path, answer.page, methods=[entry.method]))
        if not entry.raw:
            routes.append(Route(API + page_path, answer.document, methods=[entry.method]))
    app = Starlette(
        routes=[*routes, _static_route()],
        exception_handlers={HTTPException: _on_http_error(console), Exception: _on_defect(console)},
    )
    app.router.redirect_slashes = False
    return Served(app, lambda status, text: {"error": text})


def _static_route() -> BaseRoute:
    from starlette.routing import Mount  # noqa: PLC0415

    return Mount("/static", StaticFiles(directory=HERE / "static"))


def _to_first_cluster(console: Console) -> Callable[[Request], Awaitable[Response]]:
    async def go(request: Request) -> Response:
        await console.gate.admit(request, Right.VIEWER, False)
        first = next(iter(console.clusters.names))
        return console.gate.finish(request, RedirectResponse(with_query(f"/c/{first}/", {}), 302))

    return go


class _Answer:
    """The two ways in which one entry answers."""

    def __init__(self, console: Console, entry: Entry) -> None:
        self._console = console
        self._entry = entry

    async def page(self, request: Request) -> Response:
        caller = await self._console.gate.admit(request, self._entry.right, self._entry.changes)
        ask, found = await self._found(request, caller, for_page=True)
        if isinstance(found, Response):
            return self._console.gate.finish(request, found)
        if isinstance(found, Done):
            said = {"said": found.words, "seal": self._console.seal(found.words)}
            to = found.to + ("&" if "?" in found.to else "?") + with_query("", said)[1:]
            return self._console.gate.finish(request, RedirectResponse(to, HTTPStatus.SEE_OTHER))
        assert ask is not None
        assert self._entry.template is not None
        fragment = FRAGMENT_HEADER in request.headers
        html = self._console.pages.render(self._entry.template, page_context(self._console, ask, found, fragment))
        return self._console.gate.finish(request, Response(html, media_type="text/html"))

    async def document(self, request: Request) -> Response:
        caller = await self._console.gate.admit(request, self._entry.right, self._entry.changes)
        _, found = await self._found(request, caller, for_page=False)
        if isinstance(found, Response):
            return self._console.gate.finish(request, found)
        if isinstance(found, Done):
            found = {"done": found.words, **found.document}
        return self._console.gate.finish(request, json_answer(jsonable(found)))

    async def _found(
        self, request: Request, caller: Caller, *, for_page: bool
    ) -> tuple[Ask | None, "dict[str, Any] | Done | Response"]:
        console, entry = self._console, self._entry
        name = request.path_params["cluster"]
        if name not in console.clusters.settings:
            raise HTTPException(404, f"there is no cluster {name} here, but {', '.join(console.clusters.names)}")
        watched = await console.clusters.of(name, caller.name, caller.login)
        started = time.monotonic()
        try:
            names = {key: str(value) for key, value in request.path_params.items() if key != "cluster"}
            ask = Ask(console, watched, caller, names, await read_fields(request), request.url.path, for_page)
            found = await entry.view(ask)
        except OttlaError as error:
            if entry.changes:
                console.gate.note(caller, request, entry.summary, str(error), False)
            raise HTTPException(status_of(error), in_words(error)) from error
        if entry.changes:
            words = found.words if isinstance(found, Done) else entry.summary
            console.gate.note(caller, request, entry.summary, words, True)
            watched.invalidate()
        logger.debug("%s %s took %.0f ms", entry.method, request.url.path, (time.monotonic() - started) * 1000)
        return ask, found


def status_of(error: OttlaError) -> int:
    if isinstance(error, BadInput):
        return HTTPStatus.BAD_REQUEST
    if isinstance(error, NotThere):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, Unseen):
        return HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, ApiError):
        if error.code in _MISSING:
            return HTTPStatus.NOT_FOUND
        return HTTPStatus.FORBIDDEN if error.code in _FORBIDDEN else HTTPStatus.CONFLICT
    if isinstance(error, RegistryError):
        return error.status if error.status < HTTPStatus.INTERNAL_SERVER_ERROR else HTTPStatus.BAD_GATEWAY
    if isinstance(error, ClientError) and not isinstance(error, CannotReset):
        return HTTPStatus.BAD_GATEWAY
    return HTTPStatus.CONFLICT


def in_words(error: OttlaError) -> str:
    return broker_words(error) if isinstance(error, ApiError) else str(error)


def jsonable(value: Any) -> Any:
    """Rows are named tuples; keys that begin with _ are for templates alone."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: jsonable(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): jsonable(each) for name, each in value.items() if not str(name).startswith("_")}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(each) for each in value]
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def page_context(console: Console, ask: Ask, found: Mapping[str, Any], fragment: bool) -> dict[str, Any]:
    said = ask.fields.get("said")
    return {
        **found,
        "ask": ask,
        "caller": ask.caller,
        "may_operate": ask.caller.right >= Right.OPERATOR,
        "may_administer": ask.caller.right >= Right.ADMIN,
        "csrf": ask.caller.csrf,
        "clusters": console.clusters.names,
        "cluster": ask.watched.name,
        "cluster_settings": ask.watched.settings,
        "look_error": ask.watched.error,
        "base": ask.base,
        "title": console.title,
        "ottla_version": __version__,
        "fragment": fragment,
        "said": said if hmac.compare_digest(ask.fields.get("seal").encode(), console.seal(said).encode()) else "",
    }


def _on_http_error(console: Console) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = error.detail
        if error.status_code == HTTPStatus.NOT_FOUND and text == HTTPStatus.NOT_FOUND.phrase:
            text = "there is nothing at this address"
        if request.url.path.startswith(API + "/"):
            return console.gate.finish(request, json_answer({"error": text}, error.status_code, error.headers))
        html = console.pages.render(
            "error.html",
            {"status": error.status_code, "words": text, "title": console.title, "clusters": console.clusters.names},
        )
        response = Response(html, error.status_code, error.headers, media_type="text/html")
        return console.gate.finish(request, response)

    return answer


def _on_defect(console: Console) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        text = "something went wrong here; the log of the console says what"
        return console.gate.finish(request, json_answer({"error": text}, HTTPStatus.INTERNAL_SERVER_ERROR))

    return answer
