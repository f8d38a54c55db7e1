"""The logins of a connection: what is served when, and how long a login lasts."""

import struct

import pytest

from ottla.broker.security.sasl.login import Login, Offer, session_lifetime_ms
from ottla.broker.security.sasl.plain import Plain
from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Mechanism, Verdict
from ottla.broker.server.gate import Passage, check, frame_bounds
from ottla.broker.session import ANONYMOUS, Authentication, Principal, Session
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.errors import MalformedMessage

USERS = {"alice": "secret", "bob": "secret"}
ALICE, BOB = b"\0alice\0secret", b"\0bob\0secret"


class Expiring:
    """A mechanism whose credentials expire, in two steps."""

    def __init__(self) -> None:
        self._steps = 0

    def step(self, token: bytes, now_ms: int) -> Verdict:
        self._steps += 1
        return Challenge(b"go on") if self._steps == 1 else Accepted(b"done", token.decode(), now_ms + 2_000)


def begin(mechanism: str) -> Mechanism:
    return Plain(USERS, b"decoy") if mechanism == "PLAIN" else Expiring()


def connected(reauthentication_ms: int = 0) -> tuple[Session, Login]:
    login = Login(lambda: Offer(("PLAIN", "EXPIRING"), begin, lambda _: reauthentication_ms), 1_000)
    return Session("SASL", "h", login=login), login


def frame(key: int, version: int = 0) -> bytearray:
    return bytearray(struct.pack(">hhih", key, version, 1, -1))


def test_a_login_makes_the_client_known() -> None:
    session, login = connected()
    assert (session.authentication, session.principal, session.restricted) == (
        Authentication.HANDSHAKE,
        ANONYMOUS,
        True,
    )
    assert login.may_choose(session, 0)
    assert login.choose(session, "PLAIN", 0, bare=False)
    assert session.authentication is Authentication.EXCHANGE
    answer = login.token(session, ALICE, 0, 0)
    assert (answer.error, answer.lifetime_ms) == (ErrorCode.NONE, 0)
    assert (session.authentication, session.principal, session.restricted) == (
        Authentication.DONE,
        Principal("User", "alice"),
        False,
    )
    assert not login.may_choose(session, 100), "without an end there is nothing to renew"


def test_a_wrong_password_is_the_end() -> None:
    session, login = connected()
    login.choose(session, "PLAIN", 0, bare=False)
    answer = login.token(session, b"\0alice\0wrong", 0, 0)
    assert (answer.error, answer.text) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Authentication failed: Invalid username or password",
    )
    assert (session.authentication, session.principal) == (Authentication.FAILED, ANONYMOUS)
    assert not login.may_choose(session, 100)
    with pytest.raises(MalformedMessage, match="failed"):
        check(frame(ApiKey.SASL_HANDSHAKE), session, 0)


def test_a_mechanism_that_is_not_offered_is_the_end() -> None:
    session, login = connected()
    assert not login.choose(session, "GSSAPI", 0, bare=False)
    assert session.authentication is Authentication.FAILED


def test_a_session_is_renewed_with_the_same_mechanism_by_the_same_user() -> None:
    session, login = connected(reauthentication_ms=60_000)
    login.choose(session, "PLAIN", 10, bare=False)
    assert login.token(session, ALICE, 0, 10).lifetime_ms == 60_000
    assert (session.expires_at, session.restricted) == (70, True)
    assert not login.may_choose(session, 10.9), "not twice in a second"
    assert login.may_choose(session, 11)
    login.choose(session, "PLAIN", 50, bare=False)
    assert session.principal == Principal("User", "alice"), "until it is known better"
    login.token(session, ALICE, 0, 50)
    assert session.expires_at == 110
    login.choose(session, "PLAIN", 100, bare=False)
    answer = login.token(session, BOB, 0, 100)
    assert answer.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.text == "Cannot change principals during re-authentication from User.alice: User.bob"
    assert session.authentication is Authentication.FAILED


def test_a_session_cannot_be_renewed_with_another_mechanism() -> None:
    session, login = connected(reauthentication_ms=60_000)
    login.choose(session, "PLAIN", 0, bare=False)
    login.token(session, ALICE, 0, 0)
    assert login.choose(session, "EXPIRING", 30, bare=False), "said with the first token, as Kafka does"
    answer = login.token(session, b"alice", 0, 30)
    assert answer.error is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.text == (
        "SASL mechanism 'EXPIRING' requested by client is not supported for re-authentication of mechanism 'PLAIN'"
    )


def test_a_session_lasts_no_longer_than_what_was_shown() -> None:
    session, login = connected(reauthentication_ms=60_000)
    login.choose(session, "EXPIRING", 5, bare=False)
    assert login.token(session, b"", 1_000, 5).reply == b"go on"
    answer = login.token(session, b"alice", 1_000, 5)
    assert (answer.reply, answer.lifetime_ms, session.expires_at) == (b"done", 2_000, 7)


@pytest.mark.parametrize(
    ("reauthentication_ms", "expires_ms", "lasts"),
    [(0, None, None), (500, None, 500), (0, 1_700, 700), (500, 1_700, 500), (900, 1_700, 700), (900, 900, 0)],
)
def test_how_long_a_session_lasts(reauthentication_ms: int, expires_ms: int | None, lasts: int | None) -> None:
    assert session_lifetime_ms(reauthentication_ms, expires_ms, 1_000) == lasts


def test_before_the_login_only_versions_and_the_handshake_are_served() -> None:
    session, _ = connected()
    assert check(frame(ApiKey.API_VERSIONS), session, 0) is Passage.SERVE
    assert check(frame(ApiKey.SASL_HANDSHAKE), session, 0) is Passage.SERVE
    for key in (ApiKey.METADATA, ApiKey.SASL_AUTHENTICATE, ApiKey.PRODUCE, 4242):
        with pytest.raises(MalformedMessage, match="before the client had logged in"):
            check(frame(key), session, 0)
    session.asked_versions = True
    with pytest.raises(MalformedMessage, match="before the client had logged in"):
        check(frame(ApiKey.API_VERSIONS), session, 0)


def test_in_the_middle_of_a_login_tokens_come_and_nothing_else() -> None:
    session, login = connected()
    login.choose(session, "PLAIN", 0, bare=False)
    assert check(frame(ApiKey.SASL_AUTHENTICATE), session, 0) is Passage.SERVE
    for key in (ApiKey.METADATA, ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS):
        assert check(frame(key), session, 0) is Passage.REFUSE


def test_old_clients_send_bare_tokens_of_any_size() -> None:
    session, login = connected()
    assert frame_bounds(session, 10_000) == (8, 1_000)
    login.choose(session, "PLAIN", 0, bare=True)
    assert check(bytearray(), session, 0) is Passage.BARE_TOKEN
    assert frame_bounds(session, 10_000) == (0, 1_000)
    assert frame_bounds(session, 500) == (0, 500)
    login.token(session, ALICE, 0, 0)
    assert not login.bare, "requests follow"


def test_after_the_end_of_a_session_it_can_be_renewed_and_nothing_else() -> None:
    session, login = connected(reauthentication_ms=60_000)
    login.choose(session, "PLAIN", 0, bare=False)
    login.token(session, ALICE, 0, 0)
    assert frame_bounds(session, 10_000) == (8, 10_000)
    assert check(frame(ApiKey.METADATA), session, 59.9) is Passage.SERVE
    assert check(frame(ApiKey.SASL_HANDSHAKE), session, 61) is Passage.SERVE
    with pytest.raises(MalformedMessage, match="session of User:alice has ended"):
        check(frame(ApiKey.METADATA), session, 60)
