"""A bucket that has one content under every name, and notes what it is asked: how many requests something costs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ottla.pipelines.connectors.objects.store import S3Access


@contextmanager
def asked_bucket(content: bytes) -> Iterator[tuple[S3Access, list[str]]]:
    """How to reach it, and the methods of the requests so far."""
    asked: list[str] = []

    class Bucket(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(200, b"", len(content))

        def do_GET(self) -> None:
            first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
            self._answer(206, content[first : last + 1], last + 1 - first)

        def log_message(self, *_: object) -> None: ...

        def _answer(self, status: int, body: bytes, length: int) -> None:
            asked.append(self.command)
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Bucket) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield S3Access(endpoint=f"http://127.0.0.1:{server.server_port}", access_key="ann", secret_key="x"), asked
        finally:
            server.shutdown()
            serving.join()
