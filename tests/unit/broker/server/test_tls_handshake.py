"""Handshakes: who agrees gets a channel, everybody else is gone soon and has cost little."""

import asyncio
import random
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop
from tests.chance import SOAK

from ottla.broker.server.tls_channel import TlsChannel
from ottla.broker.server.tls_handshake import HANDSHAKE_BYTES_MAX, Handshakes
from ottla.tls.authority import Authority, make_authority
from ottla.tls.ciphers import read_suites
from ottla.tls.contexts import Agreement, client_context, server_context, try_handshake
from ottla.tls.names import owner_of
from ottla.tls.stores import KeyStore, TrustStore

PATIENCE_S = 600.0 if SOAK else 30.0
MUTATIONS = 50_000 if SOAK else 200


@pytest.fixture(scope="module")
def authority() -> Authority:
    return make_authority()


@pytest.fixture(scope="module")
def keys(authority: Authority) -> KeyStore:
    return authority.issue("broker", ["localhost"])


class Broker:
    """A listener that does nothing but handshakes, and notes how they end."""

    def __init__(self, context: ssl.SSLContext, handshakes: Handshakes, *, in_thread: bool) -> None:
        self.context = context
        self.in_thread = in_thread
        self.handshakes = handshakes
        self.agreed: asyncio.Queue[tuple[TlsChannel, bytes | None]] = asyncio.Queue()
        self.failures: asyncio.Queue[str] = asyncio.Queue()

    def accept(self) -> socket.socket:
        """The client's end of a new connection."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        self.handshakes.begin(
            ours,
            self.context,
            lambda channel, certificate: self.agreed.put_nowait((channel, certificate)),
            lambda why, *, went_away: self.failures.put_nowait(f"{why} (went away)" if went_away else why),
            in_thread=self.in_thread,
        )
        return theirs

    async def client(self, context: ssl.SSLContext) -> asyncio.StreamWriter:
        streams = await asyncio.open_connection(sock=self.accept(), ssl=context, server_hostname="localhost")
        return streams[1]

    async def refused(self, context: ssl.SSLContext) -> ssl.SSLError:
        """What a client of OpenSSL's own is told: in TLS 1.3 some of it only after its side is done."""
        sock = self.accept()
        sock.setblocking(True)

        def meet() -> ssl.SSLError:
            with pytest.raises(ssl.SSLError) as caught, context.wrap_socket(sock, server_hostname="localhost") as tls:
                assert tls.recv(1) == b"?", "nothing but an alert is ever sent to it"
            return caught.value

        return await asyncio.to_thread(meet)


@asynccontextmanager
async def broker(context: ssl.SSLContext, *, in_thread: bool = False, **limits: Any) -> AsyncIterator[Broker]:
    handshakes = Handshakes(asyncio.get_running_loop(), **limits)
    serving = Broker(context, handshakes, in_thread=in_thread)
    try:
        yield serving
    finally:
        handshakes.close()
        while not serving.agreed.empty():
            serving.agreed.get_nowait()[0].close()


def on_a_loop(work: Callable[[], Awaitable[Any]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def servers(keys: KeyStore, authority: Authority, verify: ssl.VerifyMode = ssl.CERT_NONE) -> ssl.SSLContext:
    return server_context(keys, TrustStore((authority.certificate,)), verify, Agreement())


def clients(authority: Authority, keys: KeyStore | None = None) -> ssl.SSLContext:
    return client_context(keys, TrustStore((authority.certificate,)), Agreement(), check_hostname=True)


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("verify", [ssl.CERT_NONE, ssl.CERT_OPTIONAL, ssl.CERT_REQUIRED])
def test_a_client_with_a_certificate_is_known(
    authority: Authority, keys: KeyStore, verify: ssl.VerifyMode, in_thread: bool
) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority, verify), in_thread=in_thread) as serving:
            writer = await serving.client(clients(authority, authority.issue("alice")))
            channel, certificate = await serving.agreed.get()
            owner = owner_of(certificate) if certificate is not None else None
            assert owner == (None if verify is ssl.CERT_NONE else "CN=alice")
            assert len(serving.handshakes) == 0
            channel.close()
            writer.transport.abort()

    on_a_loop(work)


def test_who_has_no_certificate_or_one_of_another_authority_is_refused(authority: Authority, keys: KeyStore) -> None:
    stranger = make_authority("stranger").issue("alice")

    async def work() -> None:
        async with broker(servers(keys, authority, ssl.CERT_REQUIRED)) as serving:
            for client, why in ((clients(authority), "gave no certificate"), (clients(authority, stranger), "trusted")):
                assert "ALERT" in str((await serving.refused(client)).reason)
                assert why in await serving.failures.get()
            assert serving.agreed.empty()

    on_a_loop(work)


def test_a_client_that_does_not_trust_the_broker_is_told_of(authority: Authority, keys: KeyStore) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority)) as serving:
            assert isinstance(await serving.refused(clients(make_authority("stranger"))), ssl.SSLCertVerificationError)
            assert "does not trust" in await serving.failures.get()

    on_a_loop(work)


@pytest.mark.parametrize(
    "request_", [b"\0\0\0\x20\0\x12\0\3", b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-x\r\n", b"\x80\x2e\1"]
)
def test_who_speaks_no_tls_is_hung_up_on(authority: Authority, keys: KeyStore, request_: bytes) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority)) as serving:
            theirs = serving.accept()
            theirs.send(request_)
            assert "is not TLS" in await serving.failures.get()
            loop = asyncio.get_running_loop()
            assert await loop.sock_recv(theirs, 100) == b"", "no bytes that a client would take for an answer"
            theirs.close()

    on_a_loop(work)


def test_half_open_connections_end_in_time(authority: Authority, keys: KeyStore) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority), seconds_max=0.2) as serving:
            silent, begun = serving.accept(), serving.accept()
            begun.send(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello
            assert [await serving.failures.get() for _ in range(2)] == ["it took too long"] * 2
            assert len(serving.handshakes) == 0
            for peer in (silent, begun):
                peer.close()

    on_a_loop(work)


def test_too_many_push_out_the_one_that_has_taken_the_longest(authority: Authority, keys: KeyStore) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority), number_max=50) as serving:
            peers = [serving.accept() for _ in range(400)]
            assert len(serving.handshakes) == 50
            assert serving.failures.qsize() == 350
            assert "more than 50 handshakes are under way" in await serving.failures.get()
            assert peers[0].recv(1) == b""
            with pytest.raises(BlockingIOError):
                peers[-1].recv(1)
            writer = await serving.client(clients(authority))
            (await serving.agreed.get())[0].close()
            writer.transport.abort()
            for peer in peers:
                peer.close()

    on_a_loop(work)


def test_a_handshake_without_end_is_ended(authority: Authority, keys: KeyStore) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority)) as serving:
            theirs = serving.accept()
            loop = asyncio.get_running_loop()
            record = b"\x16\x03\x01\x40\x00" + b"\x01\xff\xff\xff" + bytes(0x4000 - 4)
            failing = asyncio.ensure_future(serving.failures.get())
            sent = 0
            while not failing.done() and sent < 4 * HANDSHAKE_BYTES_MAX:
                try:
                    sent += theirs.send(record)
                except BlockingIOError:
                    pass
                except OSError:
                    break
                await asyncio.sleep(0)
            assert await failing
            assert loop.is_running()
            theirs.close()

    on_a_loop(work)


def hello(context: ssl.SSLContext) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("in_thread", [False, True])
def test_mutated_hellos_get_nobody_in(authority: Authority, keys: KeyStore, in_thread: bool) -> None:
    chance = random.Random(7)
    good = hello(clients(authority))

    async def work() -> None:
        async with broker(servers(keys, authority), in_thread=in_thread) as serving:
            loop = asyncio.get_running_loop()
            for _ in range(MUTATIONS):
                bad = bytearray(good)
                for _ in range(chance.randint(1, 8)):
                    bad[chance.randrange(len(bad))] = chance.randrange(256)
                theirs = serving.accept()
                theirs.send(bad[: chance.randint(1, len(bad))] if chance.random() < 0.2 else bad)
                theirs.shutdown(socket.SHUT_WR)
                assert await serving.failures.get()
                while await loop.sock_recv(theirs, 65_536):
                    pass
                theirs.close()
            assert serving.agreed.empty()
            writer = await serving.client(clients(authority))
            (await serving.agreed.get())[0].close()
            writer.transport.abort()

    on_a_loop(work)


def test_what_a_context_agrees_on(authority: Authority, keys: KeyStore) -> None:
    trust = TrustStore((authority.certificate,))
    old = Agreement(suites=read_suites(["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"]))
    new = Agreement(("TLSv1.3",))
    server = server_context(keys, None, ssl.CERT_NONE, old)
    try_handshake(server, client_context(None, trust, Agreement(("TLSv1.2",)), check_hostname=True))
    with pytest.raises(ssl.SSLError):
        try_handshake(server, client_context(None, trust, new, check_hostname=True))
    elsewhere = authority.issue("broker", ["elsewhere"])
    named_otherwise = server_context(elsewhere, None, ssl.CERT_NONE, new)
    with pytest.raises(ssl.SSLCertVerificationError):
        try_handshake(named_otherwise, client_context(None, trust, new, check_hostname=True))
    assert server.options & ssl.OP_NO_RENEGOTIATION


def test_an_intermediate_authority_alone_is_believed_as_in_java(authority: Authority) -> None:
    """Whatever is in a trust store is an anchor, self-signed or not: here the certificate itself."""
    keys = authority.issue("broker", ["localhost"])
    trust = TrustStore((keys.certificate,))
    server = server_context(keys._replace(chain=keys.chain[:1]), None, ssl.CERT_NONE, Agreement())
    try_handshake(server, client_context(None, trust, Agreement(), check_hostname=True))


def test_who_hangs_up_has_done_nothing_wrong(authority: Authority, keys: KeyStore) -> None:
    async def work() -> None:
        async with broker(servers(keys, authority)) as serving:
            serving.accept().close()
            assert await serving.failures.get() == "the peer has hung up (went away)"

    on_a_loop(work)
