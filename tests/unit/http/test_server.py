"""One server on somebody else's loop: answers, errors in one form, limits, TLS, login, and how it stops."""

import asyncio
import base64
import contextlib
import datetime
import ipaddress
import json
import logging
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.unit.http.serving import Answer, answer, ask, connected, hello, serving

from ottla.http.address import BadListener, parse_address
from ottla.http.application import Login, application, json_answer
from ottla.http.limits import HttpLimits
from ottla.http.server import HttpServer


def error(found: Answer) -> str:
    assert found.headers["content-type"] == "application/json"
    document = json.loads(found.body)
    assert document.keys() == {"error"}
    return str(document["error"])


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_it_answers_on_either_loop_and_touches_no_signal(runner: Any) -> None:
    async def main() -> None:
        before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        async with serving() as server:
            assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
            found = await ask(server, "GET /hello HTTP/1.1")
            assert (found.status, json.loads(found.body)) == (200, {"hello": "you"})
            assert "server" not in found.headers
            assert "date" in found.headers
            address = server.address
        again = HttpServer(application([]), address)  # the port is free again
        await again.start()
        assert again.url == f"http://{address}"
        with pytest.raises(BadListener, match="is in use"):
            await HttpServer(application([]), address).start()
        await again.stop()

    runner(main())


def test_head_unknown_paths_wrong_methods_and_failures(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving() as server:
            whole, head = await ask(server, "GET /hello HTTP/1.1"), await ask(server, "HEAD /hello HTTP/1.1")
            assert (head.status, head.body) == (200, b"")
            assert head.headers["content-length"] == whole.headers["content-length"]
            missing = await ask(server, "GET /hello/ HTTP/1.1")
            assert (missing.status, error(missing)) == (
                404,
                "there is GET /hello, POST /echo, GET /fail and GET /large",
            )
            wrong = await ask(server, "GET /echo HTTP/1.1")
            assert (wrong.status, wrong.headers["allow"]) == (405, "post")
            assert error(wrong) == "/echo does not take GET, but POST"
            failed = await ask(server, "GET /fail HTTP/1.1")
            assert failed.status == 500
            assert "a secret" not in error(failed)
            nonsense = await ask(server, "nonsense")
            assert (nonsense.status, error(nonsense)) == (400, "Invalid HTTP request received.")
            upgrade = await ask(server, "GET /hello HTTP/1.1\nUpgrade: websocket")
            assert upgrade.status == 200

    asyncio.run(main())
    assert "ValueError: a secret" in caplog.text  # in the log, where it belongs


def test_another_form_of_errors_is_that_of_all() -> None:
    def body(status: int, text: str) -> dict[str, Any]:
        return {"error_code": status, "message": text}

    async def main() -> None:
        limits = HttpLimits(body_bytes_max=10, header_bytes_max=1000)
        served = application([Route("/hello", hello)], error_body=body, unknown="HTTP 404 Not Found")
        async with serving(served=served, limits=limits) as server:
            codes = []
            for request in (
                "GET / HTTP/1.1",
                "POST /hello HTTP/1.1",
                "GET /hello HTTP/1.1\nContent-Length: 11",
                "GET /hello HTTP/1.1\nX: " + 2000 * "x",
            ):
                found = await ask(server, request)
                assert json.loads(found.body)["error_code"] == found.status
                codes.append(found.status)
            assert codes == [404, 405, 413, 431]

    asyncio.run(main())


def test_large_headers_and_bodies_are_refused() -> None:
    async def main() -> None:
        limits = HttpLimits(body_bytes_max=1000, header_bytes_max=2000)
        async with serving(limits=limits) as server:
            found = await ask(server, "GET /hello HTTP/1.1\nX: " + 3000 * "x")
            assert (found.status, error(found)) == (431, "headers have at most 2000 bytes here")
            found = await ask(server, "POST /echo HTTP/1.1\nContent-Length: 1001")  # of which none comes
            assert (found.status, error(found)) == (413, "the body of a request has at most 1000 bytes here")
            async with connected(server) as (reader, writer):  # and where it does not say so before
                writer.write(b"POST /echo HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n")
                writer.write(b"400\r\n" + 0x400 * b"x" + b"\r\n")
                found = await answer(reader)
            assert (found.status, error(found)) == (413, "the body of a request has at most 1000 bytes here")
            async with connected(server) as (reader, writer):
                head = "POST /echo HTTP/1.1\r\nHost: here\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n"
                writer.write(head.encode() + 1000 * b"x")
                assert json.loads((await answer(reader)).body) == {"bytes": 1000}

    asyncio.run(main())


def test_slow_clients_do_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.http.server.LOOK_SECONDS", 0.02)

    async def main() -> None:
        limits = HttpLimits(header_seconds_max=0.2, body_seconds_max=0.2, write_seconds_max=0.3, idle_seconds_max=1)
        async with serving(limits=limits) as server, asyncio.timeout(60):
            async with connected(server) as (reader, _):  # one that says nothing
                assert await ended(reader)
            async with connected(server) as (reader, writer):  # one that never ends its headers

                async def drip() -> None:
                    while True:
                        writer.write(b"X")
                        await asyncio.sleep(0.01)

                writer.write(b"GET /hello HTTP/1.1\r\n")
                dripping = asyncio.create_task(drip())
                assert await ended(reader)
                dripping.cancel()
            async with connected(server) as (reader, writer):  # ... nor its body
                writer.write(b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\nx")
                found = await answer(reader)
                assert (found.status, error(found)) == (
                    408,
                    "the body of a request arrives within 0.2 seconds here",
                )
            async with connected(server) as (reader, writer):  # ... nor takes its answer
                reader._transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
                await until(lambda: server.connections == 1)
                await until(lambda: server.connections == 0)
            async with connected(server) as (reader, writer):  # one with nothing more to ask
                writer.write(b"GET /hello HTTP/1.1\r\nHost: here\r\n\r\n")
                assert (await answer(reader)).status == 200

    asyncio.run(main())


async def ended(reader: asyncio.StreamReader) -> bool:
    with contextlib.suppress(ConnectionError):
        return await reader.read() == b""
    return True


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_more_connections_than_allowed_are_told_so_and_many_more_are_not_heard() -> None:
    async def main() -> None:
        limits = HttpLimits(connections_max=2, connections_spare=1)
        async with serving(limits=limits) as server, contextlib.AsyncExitStack() as stack, asyncio.timeout(60):
            for _ in range(2):
                await stack.enter_async_context(connected(server))
            found = await ask(server, "GET /hello HTTP/1.1")
            assert (found.status, error(found)) == (
                503,
                "there are more than 2 connections already; try again later",
            )
            await until(lambda: server.connections == 2)
            await stack.enter_async_context(connected(server))
            async with connected(server) as (reader, _):
                assert await ended(reader)

    asyncio.run(main())


def test_requests_under_way_may_end_when_it_stops_but_not_stay(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def wait(request: Request) -> Response:
            entered.set()
            await leave.wait()
            return json_answer({"left": True})

        for stays in (False, True):
            entered.clear()
            leave.clear()
            server = HttpServer(
                application([Route("/wait", wait)]),
                parse_address("0"),
                limits=HttpLimits(stop_seconds_max=0.3 if stays else 60),
            )
            await server.start()
            async with connected(server) as idle, connected(server) as (reader, writer), asyncio.timeout(60):
                writer.write(b"GET /wait HTTP/1.1\r\nHost: here\r\n\r\n")
                await entered.wait()
                stopping = asyncio.create_task(server.stop())
                assert await ended(idle[0])
                if stays:
                    assert await ended(reader)
                else:
                    leave.set()
                    assert json.loads((await answer(reader)).body) == {"left": True}
                await stopping
                with pytest.raises(OSError):
                    await asyncio.open_connection(*server.address)

    asyncio.run(main())
    assert "Cutting off 1 HTTP requests" in caplog.text


def test_requests_are_logged_for_those_who_want_to_see_them(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving() as server:
            await ask(server, "GET /hello?secret=1 HTTP/1.1")

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert "/hello" not in caplog.text
    with caplog.at_level(logging.DEBUG, logger="ottla.http.access"):
        asyncio.run(main())
    (line,) = [record.getMessage() for record in caplog.records if record.name == "ottla.http.access"]
    assert " - GET /hello 200 " in line
    assert "secret" not in line  # what stands behind a question mark may be one


def certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server that signs for itself, and of a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=pem)


@pytest.mark.parametrize("runner", [asyncio.run, uvloop.run])
def test_tls(tmp_path: Path, runner: Any) -> None:
    mine, theirs = certificate(tmp_path)

    async def main() -> None:
        async with serving(tls=mine) as server:
            assert server.url.startswith("https://")
            found = await ask(server, "GET /hello HTTP/1.1", theirs)
            assert (found.status, json.loads(found.body)) == (200, {"hello": "you"})
            with pytest.raises(ssl.SSLCertVerificationError):
                await ask(server, "GET /hello HTTP/1.1", ssl.create_default_context())
            async with connected(server) as (reader, writer):  # who speaks plainly is not heard
                writer.write(b"GET /hello HTTP/1.1\r\nHost: here\r\n\r\n")
                assert b"hello" not in await reader.read()

    runner(main())


def test_login(caplog: pytest.LogCaptureFixture) -> None:
    async def authenticate(request: Request) -> str | None:
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind != "Basic":
            return None
        user, _, password = base64.b64decode(given).decode().partition(":")
        return user if password == "right" else None

    def basic(text: str) -> str:
        return f"GET /hello HTTP/1.1\nAuthorization: Basic {base64.b64encode(text.encode()).decode()}"

    async def main() -> None:
        async with serving(login=Login(authenticate)) as server:
            for request in ("GET /hello HTTP/1.1", "GET /nowhere HTTP/1.1", basic("jana:wrong")):
                found = await ask(server, request)
                assert (found.status, error(found)) == (401, "this needs a login: none was sent, or it is wrong")
                assert found.headers["www-authenticate"] == 'basic realm="ottla"'
            found = await ask(server, basic("jana:right"))
            assert json.loads(found.body) == {"hello": "jana"}
            found = await ask(server, "GET /hello HTTP/1.1\nAuthorization: Basic x")  # a defect of `authenticate`
            assert found.status == 500
            error(found)

    asyncio.run(main())
    assert "binascii.Error" in caplog.text


@pytest.mark.parametrize("module", ["ottla.broker.node", "ottla.http.thread", "ottla.cli.common.listening"])
def test_nobody_pays_for_http_before_a_listener_starts(module: str) -> None:
    program = f"import sys, {module}; print(sorted({{'starlette', 'uvicorn', 'h11', 'anyio'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
