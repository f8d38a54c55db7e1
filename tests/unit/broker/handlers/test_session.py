"""What a connection's session knows, and from where."""

from tests.unit.broker.handlers.conftest import Harness

from ottla.broker.handlers import api_versions
from ottla.broker.handlers.context import Call
from ottla.broker.server.dispatch import Dispatcher
from ottla.broker.session import ANONYMOUS, Authentication, Principal, QuotaEntity, Session
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import API, ApiKey
from ottla.protocol.codec import encode
from ottla.protocol.frames import request_frame
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.list_groups import ListGroupsRequest
from ottla.protocol.schema import TopLevel


def frame(request: TopLevel, version: int, client_id: str | None) -> bytearray:
    flexible = version >= API[request.API_KEY].flexible_from
    body = encode(request, version)
    return bytearray(request_frame(request.API_KEY, version, 1, client_id, body, flexible=flexible)[4:])


def tell_software(harness: Harness, session: Session, version: int, name: str, number: str) -> int:
    call = Call(ApiKey.API_VERSIONS, version, None, session)
    return api_versions.handle(harness.broker, call, ApiVersionsRequest(name, number)).error_code


def test_a_new_session_is_of_nobody() -> None:
    session = Session("PLAINTEXT", "192.0.2.7", 50_000)
    assert (session.listener, session.host, session.port) == ("PLAINTEXT", "192.0.2.7", 50_000)
    assert str(session.principal) == "User:ANONYMOUS"
    assert session.authentication is Authentication.NOT_NEEDED
    assert session.expires_at is None
    assert (session.software_name, session.software_version) == ("unknown", "unknown")


def test_the_software_is_known_once_the_client_has_told(harness: Harness) -> None:
    session = Session("PLAINTEXT", "h")
    assert tell_software(harness, session, 2, "", "") == ErrorCode.NONE
    assert session.software_name == "unknown", "clients of version 2 tell nothing"
    assert tell_software(harness, session, 3, "librdkafka", "2.8.0") == ErrorCode.NONE
    assert (session.software_name, session.software_version) == ("librdkafka", "2.8.0")


def test_a_malformed_name_of_software_is_refused_and_not_kept(harness: Harness) -> None:
    session = Session("PLAINTEXT", "h")
    assert tell_software(harness, session, 3, "bad name\n", "1") == ErrorCode.INVALID_REQUEST
    assert session.software_name == "unknown"


def test_the_budget_follows_client_id_and_principal() -> None:
    session = Session("SASL", "h", login=object())
    session.called("orders")
    assert session.entity == QuotaEntity("ANONYMOUS", "orders")
    session.authenticated(Principal("User", "alice"), expires_at=5.0)
    assert (session.authentication, session.expires_at) == (Authentication.DONE, 5.0)
    assert session.entity == QuotaEntity("alice", "orders")
    session.called(None)
    assert session.entity == QuotaEntity("alice", ""), "no client id is an empty one"


def test_each_request_tells_its_client_id(harness: Harness) -> None:
    """Proxies send requests of several clients through one connection: each call keeps the id it came with."""
    session = Session("PLAINTEXT", "h")
    dispatcher = Dispatcher(harness.broker, None)  # type: ignore[arg-type]  # nothing here waits
    calls = [dispatcher.dispatch(frame(ListGroupsRequest(), 4, name), session).call for name in ("a", "b", "b", None)]
    assert [call.client_id for call in calls] == ["a", "b", "b", None]
    assert (session.client_id, session.entity) == (None, QuotaEntity(ANONYMOUS.name, ""))
    assert all(call.session is session for call in calls)
