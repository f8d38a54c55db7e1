"""A browser as small as a test needs: requests to an application without a socket, cookies kept, nothing followed."""

import asyncio
import json
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote, unquote, urlencode

from starlette.types import ASGIApp, Message


class Answer:
    def __init__(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.status_code = status
        self.all_headers = headers
        self.headers = dict(headers)
        self.body = body

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    def __init__(self, app: ASGIApp, host: str = "localhost", *, scheme: str = "http") -> None:
        self.app, self._host, self._scheme = app, host, scheme
        self.cookies: dict[str, str] = {}

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        return self._send("GET", path, b"", headers or {})

    def post(
        self,
        path: str,
        data: Mapping[str, str] | None = None,
        *,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        document: Any = None,
    ) -> Answer:
        kind, body = "application/x-www-form-urlencoded", urlencode(data or {}).encode()
        if document is not None:
            kind, body = "application/json", json.dumps(document).encode()
        return self._send("POST", path, body if content is None else content, {"Content-Type": kind, **(headers or {})})

    def send(self, method: str, path: str, data: Mapping[str, str]) -> Answer:
        """Whatever the method: a form for all of them."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._send(method, path, urlencode(data).encode(), kind)

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {"host": self._host, **{name.lower(): value for name, value in headers.items()}}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        answer = asyncio.run(self._exchange(method, path, body, sent))
        for name, value in answer.all_headers:
            if name == "set-cookie":
                for key, morsel in SimpleCookie(value).items():
                    if morsel["max-age"] == "0":
                        self.cookies.pop(key, None)
                    else:
                        self.cookies[key] = morsel.value
        return answer

    async def _exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        bare, _, query = path.partition("?")
        scope = {
            "type": "http", "http_version": "1.1", "method": method, "scheme": self._scheme,
            "path": unquote(bare), "raw_path": quote(bare, safe="/%").encode(), "query_string": query.encode(),
            "root_path": "", "client": ("10.9.8.7", 1234), "server": (self._host, 80),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        pieces = [body[at : at + 4096] for at in range(0, len(body), 4096)] or [b""]
        status, content = 0, b""
        found: list[tuple[str, str]] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: Message) -> None:
            nonlocal status, content
            if message["type"] == "http.response.start":
                status = message["status"]
                found.extend((name.decode(), value.decode()) for name, value in message["headers"])
            else:
                content += message.get("body", b"")

        await self.app(scope, receive, send)
        return Answer(status, found, content)
