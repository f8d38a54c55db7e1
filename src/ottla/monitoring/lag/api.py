"""Burrow's HTTP API, version 3, for the clusters that are watched: its clients and burrow_exporter read it as it is."""

import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ottla.http.application import json_answer
from ottla.monitoring.lag.book import LagBook
from ottla.monitoring.lag.documents import group_detail, group_status

NO_CLUSTER = "cluster not found"
NO_CONSUMER = "cluster or consumer not found"


class BurrowApi:
    """`details` is what /v3/kafka/CLUSTER says of a cluster: how it is watched."""

    def __init__(self, books: Mapping[str, LagBook], details: Mapping[str, dict[str, Any]]) -> None:
        self._books = books
        self._details = details

    def routes(self) -> list[Route]:
        group = "/v3/kafka/{cluster}/consumer/{group}"
        return [
            Route("/burrow/admin", self._alive),
            Route("/burrow/admin/ready", self._ready),
            Route("/v3/kafka", self._clusters),
            Route("/v3/kafka/{cluster}", self._cluster),
            Route("/v3/kafka/{cluster}/topic", self._topics),
            Route("/v3/kafka/{cluster}/topic/{topic}", self._topic),
            Route("/v3/kafka/{cluster}/topic/{topic}/consumers", self._readers),
            Route("/v3/kafka/{cluster}/consumer", self._groups),
            Route(group, self._group),
            Route(group, self._forget, methods=["DELETE"]),
            Route(group + "/status", self._status),
            Route(group + "/lag", self._lag),
        ]

    async def _alive(self, request: Request) -> Response:
        return PlainTextResponse("GOOD")

    async def _ready(self, request: Request) -> Response:
        if all(book.ready for book in self._books.values()):
            return PlainTextResponse("READY")
        return PlainTextResponse("STARTING", HTTPStatus.SERVICE_UNAVAILABLE)

    async def _clusters(self, request: Request) -> Response:
        return _told(request, "cluster list returned", clusters=sorted(self._books))

    async def _cluster(self, request: Request) -> Response:
        found = self._details.get(request.path_params["cluster"])
        if found is None:
            return _missing(request, "cluster module not found")
        return _told(request, "cluster module detail returned", module=found)

    async def _topics(self, request: Request) -> Response:
        book = self._book(request)
        return (
            _missing(request, NO_CLUSTER) if book is None else _told(request, "topic list returned", topics=book.topics)
        )

    async def _topic(self, request: Request) -> Response:
        book = self._book(request)
        ends = None if book is None else book.ends(request.path_params["topic"])
        if ends is None:
            return _missing(request, "cluster or topic not found")
        return _told(request, "topic offsets returned", offsets=ends)

    async def _readers(self, request: Request) -> Response:
        book = self._book(request)
        if book is None:
            return _missing(request, NO_CLUSTER)
        return _told(request, "consumers of topic returned", consumers=book.readers(request.path_params["topic"]))

    async def _groups(self, request: Request) -> Response:
        book = self._book(request)
        if book is None:
            return _missing(request, NO_CLUSTER)
        return _told(request, "consumer list returned", consumers=book.groups)

    async def _group(self, request: Request) -> Response:
        book = self._book(request)
        found = None if book is None else group_detail(book, request.path_params["group"])
        if found is None:
            return _missing(request, NO_CONSUMER)
        return _told(request, "consumer detail returned", topics=found)

    async def _forget(self, request: Request) -> Response:
        book = self._book(request)
        if book is not None:
            book.forget(request.path_params["group"])
        return _told(request, "consumer group removed")

    async def _status(self, request: Request) -> Response:
        return self._judged(request, everything=False)

    async def _lag(self, request: Request) -> Response:
        return self._judged(request, everything=True)

    def _judged(self, request: Request, *, everything: bool) -> Response:
        """A group that is not known gets 404 and, as Burrow has it, `error: false` and the status NOTFOUND."""
        cluster, name = request.path_params["cluster"], request.path_params["group"]
        book = self._book(request)
        group = None if book is None else book.group(name, int(time.time() * 1000))
        status = group_status(cluster, group, name, everything=everything)
        code = HTTPStatus.NOT_FOUND if group is None else HTTPStatus.OK
        return _told(request, "consumer status returned", code, status=status)

    def _book(self, request: Request) -> LagBook | None:
        return self._books.get(request.path_params["cluster"])


def _told(request: Request, message: str, code: int = HTTPStatus.OK, **more: Any) -> Response:
    return json_answer({"error": False, "message": message, **more, "request": _asked(request)}, code)


def _missing(request: Request, message: str) -> Response:
    return json_answer({"error": True, "message": message, "request": _asked(request)}, HTTPStatus.NOT_FOUND)


def _asked(request: Request) -> dict[str, str]:
    return {"url": request.url.path, "host": request.headers.get("host", "")}


def error_body(status: int, text: str) -> dict[str, Any]:
    """Errors of the server itself in Burrow's form."""
    return {"error": True, "message": text, "request": {}}
