"""HTTP for machines, on loopback only: GET /status, GET /healthz, POST /stop (?pipeline=NAME for one of several)."""

import json
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOOPBACK = "127.0.0.1"


class StatusServer:
    """Serves what `status` returns; `stop` is told the name of a pipeline, or None for all."""

    def __init__(self, port: int, status: Callable[[], dict[str, Any]], stop: Callable[[str | None], None]) -> None:
        self._server = ThreadingHTTPServer((LOOPBACK, port), _handler(status, stop))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="pipeline-status", daemon=True)

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(status: Callable[[], dict[str, Any]], stop: Callable[[str | None], None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            if path == "/status":
                self._answer(HTTPStatus.OK, status())
            elif path == "/healthz":
                failed = [each["pipeline"] for each in status()["pipelines"] if each["state"] in ("failed", "waiting")]
                code = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
                self._answer(code, {"healthy": not failed, "not_running": failed})
            else:
                self._answer(HTTPStatus.NOT_FOUND, {"error": "there is GET /status, GET /healthz and POST /stop"})

        def do_POST(self) -> None:
            # A page in somebody's browser can post to loopback, but not with this header and without being asked.
            if self.headers.get("X-Ottla") is None:
                self._answer(HTTPStatus.FORBIDDEN, {"error": "POST wants the header X-Ottla, of any value"})
                return
            parts = urlsplit(self.path)
            if parts.path != "/stop":
                self._answer(HTTPStatus.NOT_FOUND, {"error": "there is POST /stop"})
                return
            name = parse_qs(parts.query).get("pipeline", [None])[0]
            known = [each["pipeline"] for each in status()["pipelines"]]
            if name is not None and name not in known:
                self._answer(HTTPStatus.NOT_FOUND, {"error": f"there is no pipeline {name} here", "here": known})
                return
            stop(name)
            self._answer(HTTPStatus.ACCEPTED, {"stopping": [name] if name else known})

        def _answer(self, code: HTTPStatus, document: dict[str, Any]) -> None:
            body = json.dumps(document).encode() + b"\n"
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Requests are nobody's news."""

    return Handler
