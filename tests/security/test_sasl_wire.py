"""What goes over the wire before and around a login, byte by byte, against a real broker."""

import random
import struct
import time
from collections.abc import Iterator

import pytest
from tests.security.hostile_kit import answers
from tests.security.sasl_kit import PASSWORD, USER, Issuer, sasl_broker, set_password
from tests.unit.broker.security.sasl.test_mechanisms import mutated

from ottla.client import sasl as client
from ottla.model.errors import ErrorCode
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ottla.testing import RunningBroker
from ottla.testing.process import resident_bytes
from ottla.testing.waiting import wait_until
from ottla.testing.wire import WireConnection

pytestmark = pytest.mark.one_broker("names its listeners")

PLAIN_TOKEN = f"\0{USER}\0{PASSWORD}".encode()
DELAY_MS = 300
SOONEST_S = (DELAY_MS - 2) / 1000
"""The broker's loop counts whole milliseconds, and begins in the middle of one."""
SIZE_MAX = 5_000
HALF_LOGINS = 200
PATIENCE_S = 60.0
HALF_LOGINS_BYTES_MAX = 16 << 20
"""Of this SIZE_MAX is a sixteenth: what is announced is not taken before it comes."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningBroker, Issuer]]:
    settings = {
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
        "sasl.server.max.receive.size": str(SIZE_MAX),
        "listener.name.sasl.scram-sha-256.connections.max.reauth.ms": "3000",
    }
    with sasl_broker(tmp_path_factory.mktemp("issuer"), **settings) as (running, issuer):
        yield running, issuer


@pytest.fixture
def wire(world: tuple[RunningBroker, Issuer]) -> Iterator[WireConnection]:
    with connected(world[0]) as connection:
        yield connection


def connected(running: RunningBroker, listener: str = "SASL") -> WireConnection:
    return WireConnection(*running.listeners[listener])


def choose(wire: WireConnection, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    return wire.call(SaslHandshakeRequest(mechanism=mechanism), version, SaslHandshakeResponse)


def show(wire: WireConnection, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    return wire.call(SaslAuthenticateRequest(auth_bytes=token), version, SaslAuthenticateResponse)


def serves(wire: WireConnection) -> bool:
    return bool(wire.call(MetadataRequest(topics=[]), 12, MetadataResponse).brokers)


def test_a_login_and_then_requests(wire: WireConnection) -> None:
    assert wire.call(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys
    offered = choose(wire, "PLAIN")
    assert (offered.error_code, offered.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
    answer = show(wire, PLAIN_TOKEN)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert serves(wire)


def test_old_clients_send_bare_tokens(wire: WireConnection) -> None:
    assert choose(wire, "PLAIN", 0).error_code == 0
    wire.send(struct.pack(">i", len(PLAIN_TOKEN)) + PLAIN_TOKEN)
    assert wire.read_frame() == b"", "four bytes that say so"
    assert serves(wire)


def test_old_clients_with_a_wrong_bare_token_are_disconnected(wire: WireConnection) -> None:
    choose(wire, "PLAIN", 0)
    begun = time.monotonic()
    wire.send(struct.pack(">i", 0))
    assert wire.closed_by_peer()
    assert time.monotonic() - begun >= SOONEST_S


def test_a_mechanism_that_is_not_offered(wire: WireConnection) -> None:
    begun = time.monotonic()
    answer = choose(wire, "GSSAPI")
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "PLAIN" in answer.mechanisms
    assert time.monotonic() - begun >= SOONEST_S
    assert wire.closed_by_peer()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_wrong_password_is_answered_late_and_is_the_end(wire: WireConnection, version: int) -> None:
    choose(wire, "PLAIN")
    begun = time.monotonic()
    answer = show(wire, b"\0nobody\0x", version)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Authentication failed: Invalid username or password",
    )
    assert time.monotonic() - begun >= SOONEST_S
    assert wire.closed_by_peer()


def test_another_request_in_the_middle_of_a_login(wire: WireConnection) -> None:
    choose(wire, "SCRAM-SHA-512")
    answer = wire.call(ApiVersionsRequest(), 3, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert wire.closed_by_peer()


def test_a_request_before_the_login_is_not_answered(wire: WireConnection) -> None:
    wire.send(wire.frame(MetadataRequest(), 12))
    assert wire.closed_by_peer()


def test_versions_are_told_once_and_again_only_after_a_version_that_is_too_new(wire: WireConnection) -> None:
    wire.send(struct.pack(">ihhihb", 11, 18, 99, 7, -1, 0))
    wire.read_frame()
    assert wire.call(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == 0
    wire.send(wire.frame(ApiVersionsRequest(), 0))
    assert wire.closed_by_peer()


def test_sizes_are_bounded_before_the_login_and_not_after(
    wire: WireConnection, world: tuple[RunningBroker, Issuer]
) -> None:
    choose(wire, "PLAIN")
    show(wire, PLAIN_TOKEN)
    names = MetadataRequest(topics=[])
    wire.send(wire.frame(names, 12, client_id="x" * (SIZE_MAX + 100)))
    assert wire.read_frame()
    with connected(world[0]) as other:
        other.send(struct.pack(">i", SIZE_MAX + 1))
        assert other.closed_by_peer()


def test_who_has_logged_in_or_need_not_is_told_that_it_is_the_wrong_time(world: tuple[RunningBroker, Issuer]) -> None:
    with connected(world[0]) as known, connected(world[0], "PLAINTEXT") as unknown:
        choose(known, "PLAIN")
        show(known, PLAIN_TOKEN)
        for wire in (known, unknown):
            assert choose(wire, "PLAIN").error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert show(wire, PLAIN_TOKEN).error_code == ErrorCode.ILLEGAL_SASL_STATE
            assert serves(wire), "and stays"


def scram(wire: WireConnection, password: str = PASSWORD) -> SaslAuthenticateResponse:
    exchange = client.scram("sha256", USER, password, f"nonce{random.random()}")
    answer = show(wire, next(exchange))
    return show(wire, exchange.send(bytes(answer.auth_bytes)))


def test_a_session_ends_unless_it_is_renewed(world: tuple[RunningBroker, Issuer]) -> None:
    with connected(world[0]) as renewing, connected(world[0]) as silent:
        for wire in (renewing, silent):
            choose(wire, "SCRAM-SHA-256")
            assert scram(wire).session_lifetime_ms == 3_000
            assert serves(wire)
        ends = time.monotonic() + 3.1
        assert choose(renewing, "SCRAM-SHA-256").error_code == ErrorCode.ILLEGAL_SASL_STATE, "not within a second"
        wait_until(lambda: not choose(renewing, "SCRAM-SHA-256").error_code, "a session that may be renewed")
        assert scram(renewing).session_lifetime_ms == 3_000
        wait_until(lambda: serves(renewing) and time.monotonic() > ends, "the end of the session that was not renewed")
        assert serves(renewing)
        silent.send(silent.frame(MetadataRequest(), 12))
        assert silent.closed_by_peer()


def test_a_session_is_not_renewed_by_somebody_else(world: tuple[RunningBroker, Issuer]) -> None:
    running, issuer = world
    with connected(running) as wire:
        choose(wire, "OAUTHBEARER")
        answer = show(wire, b"n,,\x01auth=Bearer " + issuer.token(life=60).encode() + b"\x01\x01")
        assert 50_000 < answer.session_lifetime_ms <= 60_000, "no longer than the token"
        wait_until(lambda: not choose(wire, "OAUTHBEARER").error_code, "a session that may be renewed")
        answer = show(wire, b"n,,\x01auth=Bearer " + issuer.token("bob").encode() + b"\x01\x01")
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"


def test_a_bad_token_is_explained_then_refused(world: tuple[RunningBroker, Issuer]) -> None:
    with connected(world[0]) as wire:
        choose(wire, "OAUTHBEARER")
        answer = show(wire, b"n,,\x01auth=Bearer x.y.z\x01\x01")
        assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
        assert show(wire, b"\x01").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_new_signing_key_works_without_a_restart(world: tuple[RunningBroker, Issuer]) -> None:
    running, issuer = world
    issuer.rotate()

    def works() -> bool:
        with connected(running) as wire:
            choose(wire, "OAUTHBEARER")
            answer = show(wire, b"n,,\x01auth=Bearer " + issuer.token().encode() + b"\x01\x01")
            return not answer.auth_bytes and serves(wire)

    assert not works(), "it is read behind the back of the first who comes with it"
    wait_until(works, "the new key")


def test_a_changed_password_counts_at_once_and_who_is_in_stays(world: tuple[RunningBroker, Issuer]) -> None:
    running = world[0]
    with connected(running) as before, connected(running) as old, connected(running) as new:
        choose(before, "SCRAM-SHA-256")
        assert scram(before).error_code == 0
        try:
            set_password(running.bootstrap_of("PLAINTEXT"), USER, "another one")
            choose(old, "SCRAM-SHA-256")
            assert scram(old).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            choose(new, "SCRAM-SHA-256")
            assert scram(new, "another one").error_code == 0
            assert serves(before)
        finally:
            set_password(running.bootstrap_of("PLAINTEXT"), USER, PASSWORD)


def test_mutated_handshakes_open_no_door_and_leave_others_unharmed(
    world: tuple[RunningBroker, Issuer], pytestconfig: pytest.Config
) -> None:
    """A handshake, a token, and something that only who is in is answered; others are disconnected at it."""
    running, issuer = world
    chance = random.Random(14)
    bearer = issuer.token().encode()
    rights = {
        "PLAIN": (PLAIN_TOKEN, PASSWORD.encode()),
        "SCRAM-SHA-512": (b"n,,n=alice,r=abc", b"nothing that is said first"),
        "OAUTHBEARER": (b"n,,\x01auth=Bearer " + bearer + b"\x01\x01", bearer),
    }
    let_in, heard = 0, 0
    with connected(running) as bystander:
        choose(bystander, "PLAIN")
        show(bystander, PLAIN_TOKEN)
        asked = bystander.frame(MetadataRequest(topics=[]), 12)
        inside = struct.pack(">i", running.listeners["SASL"][1])  # metadata tell where the broker is
        hello = bystander.frame(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        unchanged = hello + bystander.frame(SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN), 2) + asked
        messages, secrets = [unchanged], [True]
        for number in range(pytestconfig.getoption("--hostile-inputs") // 20):
            mechanism, (right, secret) = list(rights.items())[number % 3]
            token = mutated(right, chance)
            hello = bystander.frame(SaslHandshakeRequest(mechanism=mechanism), 1)
            if number % 2:
                changed = mutated(hello[4:], chance)
                hello = struct.pack(">i", len(changed)) + changed
            shown = bystander.frame(SaslAuthenticateRequest(auth_bytes=token), 2)
            messages.append(hello + shown + asked)
            secrets.append(secret in token)
        told = answers(running.listeners["SASL"], messages, PATIENCE_S, inside)
        for answer, knew in zip(told, secrets, strict=True):
            heard += bool(answer)
            if inside in answer:
                assert knew, answer
                let_in += 1
        assert serves(bystander)
    print(f"{len(messages)} mutated handshakes: {heard} answered, {let_in} let in, who knew the secret")
    assert let_in, "the one that was not changed"
    assert heard >= len(messages) // 2, "every second handshake is as it should be, and answered"
    assert "Traceback" not in running.log_text()


def test_half_a_login_costs_little_and_harms_nobody(world: tuple[RunningBroker, Issuer]) -> None:
    running = world[0]
    before = resident_bytes(running.pid)
    open_ends = [connected(running) for _ in range(HALF_LOGINS)]
    try:
        for number, wire in enumerate(open_ends):
            if number % 2:
                choose(wire, "SCRAM-SHA-256")
                show(wire, b"n,,n=alice,r=abc")
            else:
                wire.send(struct.pack(">i", SIZE_MAX) + b"\0" * 100)
        with connected(running) as wire:
            choose(wire, "PLAIN")
            show(wire, PLAIN_TOKEN)
            assert serves(wire)
        grown = resident_bytes(running.pid) - before
        print(f"{HALF_LOGINS} half logins: {grown / 2**20:.1f} MB")
        assert grown < HALF_LOGINS_BYTES_MAX
    finally:
        for wire in open_ends:
            wire.close()


def test_no_secret_is_in_the_log_or_in_what_settings_tell(world: tuple[RunningBroker, Issuer]) -> None:
    running = world[0]
    for secret in (PASSWORD, "bob-secret"):
        assert secret not in running.log_text()
