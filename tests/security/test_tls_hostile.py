"""What comes to a TLS port is not always TLS, and not always meant well: nobody else notices."""

import contextlib
import random
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.chance import SOAK
from tests.security.conftest import PATIENCE_S
from tests.security.hostile_kit import answers
from tests.unit.broker.security.sasl.test_mechanisms import mutated

from ottla.testing import RunningBroker
from ottla.testing.process import resident_bytes
from ottla.testing.tls import Certificates

HALF_OPEN = 5_000 if SOAK else 400  # the many want as many open files: ulimit -n 20000
HALF_OPEN_BYTES_MAX = 64 << 20
"""What they may cost, however many come: the broker keeps a bounded number of them (server/tls_handshake.py)."""
MUTATIONS = 2_000 if SOAK else 150
API_VERSIONS = b"\0\0\0\x0e" + b"\0\x12\0\0\0\0\0\x07\0\4self"  # version 0, correlation id 7
NO_RECORD = b"\xff" * 20_000  # more than any record is long: nothing is waited for
FAILED = "Failed authentication with /127.0.0.1 (channelId="


class Door(NamedTuple):
    """The TLS listener, and a way through it."""

    address: tuple[str, int]
    context: ssl.SSLContext

    @contextlib.contextmanager
    def open(self) -> Iterator[ssl.SSLSocket]:
        sock = socket.create_connection(self.address, PATIENCE_S)
        with self.context.wrap_socket(sock, server_hostname="localhost") as tls:
            yield tls


@pytest.fixture(scope="session")
def door(secured: RunningBroker, certificates: Certificates) -> Door:
    return Door(secured.listeners["TLS"], ssl.create_default_context(cafile=str(certificates.ca)))


def serves(door: Door) -> None:
    """One request, one answer."""
    with door.open() as tls:
        tls.sendall(API_VERSIONS)
        assert tls.recv(8)[4:] == b"\0\0\0\x07"


def test_half_open_handshakes_cost_little_and_shut_nobody_out(secured: RunningBroker, door: Door) -> None:
    before = resident_bytes(secured.pid)
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    peers = [socket.create_connection(door.address, PATIENCE_S) for _ in range(HALF_OPEN)]
    try:
        for peer in peers[::2]:
            peer.sendall(hello)  # the beginning of one, and nothing more
        serves(door)
        grown = resident_bytes(secured.pid) - before
        print(f"{HALF_OPEN} half-open handshakes: {grown / 2**20:.1f} MB")
        assert grown < HALF_OPEN_BYTES_MAX
    finally:
        for peer in peers:
            peer.close()
    serves(door)
    assert FAILED in secured.log_text()
    assert "(SSL handshake failed)" in secured.log_text()


@pytest.mark.parametrize("said", [b"\0\0\0\x10" + bytes(16), b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 100])
def test_what_is_no_tls_is_closed_without_a_byte(door: Door, said: bytes) -> None:
    with socket.create_connection(door.address, PATIENCE_S) as peer:
        peer.sendall(said)
        with contextlib.suppress(ConnectionResetError):
            assert peer.recv(100) == b""
    serves(door)


def test_mutated_records_end_their_connection_only(door: Door) -> None:
    """After the handshake: what does not decrypt is nobody's request."""
    chance = random.Random(5)
    for _ in range(MUTATIONS):
        raw = socket.create_connection(door.address, PATIENCE_S)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = door.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with raw:
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65_536))
            finished = outgoing.read()
            tls.write(API_VERSIONS)
            record = bytearray(outgoing.read())
            record[chance.randrange(5, len(record))] ^= 1 << chance.randrange(8)
            raw.sendall(finished + record)
            with contextlib.suppress(ConnectionResetError):
                while data := raw.recv(65_536):
                    incoming.write(data)
            with pytest.raises(ssl.SSLError):
                tls.read(100)
    serves(door)


def client_hello(door: Door) -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = door.context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_mutated_handshakes_end_their_connection_only(
    secured: RunningBroker, door: Door, pytestconfig: pytest.Config
) -> None:
    """The first message of a handshake, changed, and then a record that fits nothing."""
    chance, hello = random.Random(6), client_hello(door)
    count: int = pytestconfig.getoption("--hostile-inputs") // 20
    before = resident_bytes(secured.pid)
    messages = [mutated(hello, chance) + NO_RECORD for _ in range(count)]
    heard = sum(map(bool, answers(door.address, messages, PATIENCE_S)))
    grown = resident_bytes(secured.pid) - before
    print(f"{count} mutated handshakes: {heard} answered with an alert, or more; {grown / 2**20:.1f} MB")
    assert heard
    assert grown < HALF_OPEN_BYTES_MAX
    serves(door)
    assert "Traceback" not in secured.log_text()


def test_renegotiation_is_refused(door: Door) -> None:
    """In TLS 1.3 there is none; in TLS 1.2 OpenSSL's own client can ask for it (s_client's letter R)."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the openssl command is not installed")
    host, port = door.address
    done = subprocess.run(
        [openssl, "s_client", "-tls1_2", "-connect", f"{host}:{port}"],
        input=b"R\n", capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert b"RENEGOTIATING" in said
    assert b"no renegotiation" in said or done.returncode != 0
    serves(door)
