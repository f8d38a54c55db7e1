"""What is served: routes, and answers and errors in one form.

Errors are JSON, `{"error": "what is wrong and what to do"}`, also those of the server itself (too large, too slow,
unknown path); an API whose clients know another form passes `error_body`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

ErrorBody = Callable[[int, str], dict[str, Any]]
"""From a status and a sentence to the document that is sent."""


class Login(NamedTuple):
    """Who may come in: `authenticate` tells the user of a request (then `request.user`), or None for nobody."""

    authenticate: Callable[[Request], Awaitable[str | None]]
    challenge: str = 'Basic realm="ottla"'
    """What `WWW-Authenticate` says to those who were not let in."""


class Served(NamedTuple):
    """An application and how it speaks of errors, which the server needs for its own."""

    app: Starlette
    error_body: ErrorBody


def plain_error(status: int, text: str) -> dict[str, Any]:
    return {"error": text}


def application(routes: Sequence[BaseRoute], *, error_body: ErrorBody = plain_error, unknown: str = "") -> Served:
    """`unknown` is what a request for a path that is not there is told; by default, which paths there are."""
    told = unknown or f"there is {_listed(routes)}"

    def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = error.detail
        if error.status_code == HTTPStatus.NOT_FOUND and text == HTTPStatus.NOT_FOUND.phrase:
            text = told
        elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            allowed = (error.headers or {}).get("Allow", "")
            text = f"{request.url.path} does not take {request.method}, but {allowed}"
        return json_answer(error_body(error.status_code, text), error.status_code, error.headers)

    handlers = {HTTPException: on_http_error, Exception: answer_to_failure(error_body)}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False  # /status/ is another path, and not there
    return Served(app, error_body)


def answer_to_failure(error_body: ErrorBody) -> Callable[[Request, Exception], Response]:
    """To a request that met a defect of ours: without a word about it, which may be a secret."""

    def answer(request: Request, error: Exception) -> Response:
        text = "something went wrong here; the log of this process says what"
        return json_answer(error_body(HTTPStatus.INTERNAL_SERVER_ERROR, text), HTTPStatus.INTERNAL_SERVER_ERROR)

    return answer


def _listed(routes: Sequence[BaseRoute]) -> str:
    named = [
        f"{method} {route.path}"
        for route in routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]
    return " and ".join(part for part in (", ".join(named[:-1]), *named[-1:]) if part) or "nothing"


def json_answer(document: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps(document) + "\n", status, headers, media_type="application/json")
