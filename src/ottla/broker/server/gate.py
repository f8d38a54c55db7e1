"""What a client may ask for before it has said who it is, and after its session has ended.

    before a mechanism is chosen   ApiVersions, once, and SaslHandshake
    while tokens go to and fro     SaslAuthenticate, or bare tokens after a SaslHandshake of version 0
    after the session has ended    SaslHandshake, which renews it

Whoever asks for anything else did not come to log in: the connection is closed, and only a client in the middle of a
login is told why.
"""

from enum import Enum

from ottla.broker.security.sasl.login import Login
from ottla.broker.session import Authentication, Session
from ottla.protocol.apis import REQUEST_FLEXIBLE_FROM, ApiKey
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.frames import read_request_header


class SessionExpired(MalformedMessage):
    """The client should have logged in again."""


class Passage(Enum):
    SERVE = "serve it as any request"
    BARE_TOKEN = "the frame is a token"  # noqa: S105 (a word)
    REFUSE = "say that it comes at the wrong time, then close"


def check(frame: bytearray, session: Session, now: float) -> Passage:
    """What to do with a frame of a session that is restricted. MalformedMessage: close without an answer."""
    state, login = session.authentication, session.login
    assert isinstance(login, Login)
    if state is Authentication.EXCHANGE and login.bare:
        return Passage.BARE_TOKEN
    key = read_request_header(frame, REQUEST_FLEXIBLE_FROM).api_key
    if state is Authentication.EXCHANGE:
        return Passage.SERVE if key == ApiKey.SASL_AUTHENTICATE else Passage.REFUSE
    if state is Authentication.DONE:
        if key == ApiKey.SASL_HANDSHAKE or session.expires_at is None or now < session.expires_at:
            return Passage.SERVE
        raise SessionExpired(
            f"the session of {session.principal} has ended and was not renewed (connections.max.reauth.ms, or what "
            "it logged in with has expired)"
        )
    if state is Authentication.HANDSHAKE:
        if key == ApiKey.SASL_HANDSHAKE or (key == ApiKey.API_VERSIONS and not session.asked_versions):
            return Passage.SERVE
        raise MalformedMessage(
            f"a request with API key {key} came before the client had logged in; does it have security.protocol=SASL_*?"
        )
    raise MalformedMessage("a request came after the login had failed")


def frame_bounds(session: Session, request_bytes_max: int) -> tuple[int, int]:
    """The least and most bytes of a frame of a session that is restricted."""
    login = session.login
    if session.authentication is Authentication.DONE or not isinstance(login, Login):
        return 8, request_bytes_max
    return 0 if login.bare else 8, min(login.receive_bytes_max, request_bytes_max)
