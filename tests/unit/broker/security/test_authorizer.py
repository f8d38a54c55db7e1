"""What is remembered of what clients may do, for how long, and who is told of it."""

import logging
import time
from pathlib import Path

import pytest
from tests.unit.counting import calls_of

from ottla.broker.security.access_control import AccessControl
from ottla.broker.security.acls import authorizer as module
from ottla.broker.security.acls.authorizer import Authorizer, Decision
from ottla.broker.security.authorizer_log import LOGGER_NAME, line
from ottla.broker.session import Principal, Session
from ottla.cluster.image import ClusterImage, ImageChange
from ottla.config.access import AUTHORIZERS
from ottla.config.live import LiveConfig
from ottla.config.load import settings_from
from ottla.model.acls import AclEntry, PatternType, Permission, ResourcePattern
from ottla.model.rights import Operation, Resource
from ottla.protocol.apis import ApiKey

ORDERS = ResourcePattern(Resource.TOPIC, "orders")
PREFIXED = ResourcePattern(Resource.TOPIC, "ord", PatternType.PREFIXED)
WRITE = AclEntry("User:alice", "*", Operation.WRITE, Permission.ALLOW)
NEVER = AclEntry("User:*", "*", Operation.WRITE, Permission.DENY)
Rules = dict[ResourcePattern, tuple[AclEntry, ...]]


def session_of(name: str = "alice", host: str = "10.0.0.1") -> Session:
    session = Session("PLAINTEXT", host)
    session.authenticated(Principal("User", name))
    return session


def authorizer_with(rules: Rules, *, super_users: frozenset[str] = frozenset(), everyone: bool = False) -> Authorizer:
    authorizer = Authorizer(lambda: super_users, lambda: everyone)
    authorizer.load(ClusterImage(acls=rules))
    return authorizer


def write(authorizer: Authorizer, session: Session, name: str = "orders") -> bool:
    return authorizer.allows(session, ApiKey.PRODUCE, Operation.WRITE, Resource.TOPIC, name)


def test_an_answer_is_remembered_until_a_rule_changes() -> None:
    authorizer, session = authorizer_with({ORDERS: (WRITE,)}), session_of()
    assert write(authorizer, session)
    known = session.access
    assert write(authorizer, session)
    assert session.access is known
    authorizer.apply(ImageChange(ClusterImage(), ClusterImage(acls={ORDERS: ()}), acls=(ORDERS,)))
    assert not write(authorizer, session)
    authorizer.apply(ImageChange(ClusterImage(), ClusterImage(acls={ORDERS: (WRITE,)}), acls=(ORDERS,)))
    assert write(authorizer, session)
    image = ClusterImage()
    authorizer.apply(ImageChange(image, image))
    assert session.access is not None
    assert session.access.version == authorizer.version, "changes of other metadata forget nothing"


def test_who_logs_in_as_somebody_else_is_asked_anew() -> None:
    authorizer, session = authorizer_with({ORDERS: (WRITE,)}), session_of()
    assert write(authorizer, session)
    session.authenticated(Principal("User", "bob"))
    assert not write(authorizer, session)


def test_names_that_clients_make_up_do_not_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 100)
    authorizer, session = authorizer_with({}), session_of()
    for number in range(1000):
        assert not write(authorizer, session, f"made-up-{number}")
    assert session.access is not None
    assert sum(len(names) for names in session.access.known if names) <= 100


def test_super_users_need_no_rules() -> None:
    authorizer = authorizer_with({PREFIXED: (NEVER,)}, super_users=frozenset({"User:root"}))
    assert write(authorizer, session_of("root"))
    assert authorizer.allows_any(session_of("root"), ApiKey.INIT_PRODUCER_ID, Operation.WRITE, Resource.TOPIC)
    assert not write(authorizer, session_of())


def test_a_remembered_answer_costs_no_more_with_many_rules() -> None:
    """Counted in calls; and in time, with a bound that even a busy machine keeps."""
    many: Rules = {ResourcePattern(Resource.TOPIC, f"t{number}"): (WRITE,) for number in range(5_000)}
    costs = []
    for others in (0, len(many)):
        rules: Rules = {ORDERS: (WRITE,), **dict(list(many.items())[:others])}
        authorizer, session = authorizer_with(rules), session_of()
        write(authorizer, session)
        costs.append(calls_of(lambda: write(authorizer, session)))  # noqa: B023
        best = min(_seconds(authorizer, session) for _ in range(20))
        assert best / 1000 < 10e-6
    assert costs[0] == costs[1]


def _seconds(authorizer: Authorizer, session: Session) -> float:
    began = time.perf_counter()
    for _ in range(1000):
        write(authorizer, session)
    return time.perf_counter() - began


def decisions_of(authorizer: Authorizer) -> list[Decision]:
    seen: list[Decision] = []
    authorizer.observe_allowed = authorizer.observe_denied = seen.append
    return seen


def test_lines_of_the_authorizers_log_are_kafkas() -> None:
    authorizer = authorizer_with({ORDERS: (WRITE,), PREFIXED: (NEVER,)}, super_users=frozenset({"User:root"}))
    seen = decisions_of(authorizer)
    authorizer.allows(session_of(), ApiKey.PRODUCE, Operation.WRITE, Resource.TOPIC, "orders", count=3)
    authorizer.allows(session_of(), ApiKey.FETCH, Operation.READ, Resource.TOPIC, "orders")
    authorizer.allows(session_of("root"), ApiKey.CREATE_ACLS, Operation.ALTER, Resource.CLUSTER)
    denied, unspoken_of, root = (line(decision) for decision in seen)
    assert denied == (
        "Principal = User:alice is Denied operation = WRITE from host = 10.0.0.1 on resource = Topic:LITERAL:orders "
        "for request = Produce with resourceRefCount = 3 based on rule MatchingAcl(acl=StandardAcl("
        "resourceType=TOPIC, resourceName=ord, patternType=PREFIXED, principal=User:*, host=*, operation=WRITE, "
        "permissionType=DENY))"
    )
    assert unspoken_of == (
        "Principal = User:alice is Denied operation = READ from host = 10.0.0.1 on resource = Topic:LITERAL:orders "
        "for request = Fetch with resourceRefCount = 1 based on rule DefaultDeny"
    )
    assert root == (
        "Principal = User:root is Allowed operation = ALTER from host = 10.0.0.1 on resource = "
        "Cluster:LITERAL:kafka-cluster for request = CreateAcls with resourceRefCount = 1 based on rule SuperUser"
    )


def control(tmp_path: Path, **settings: str) -> AccessControl:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    config = LiveConfig(settings_from({"log.dirs": str(tmp_path), "authorizer.class.name": AUTHORIZERS[0], **given}))
    found = AccessControl(config)
    found.load(ClusterImage(acls={ORDERS: (WRITE,)}))
    return found


def test_denied_is_logged_allowed_only_for_those_who_debug(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER_NAME)
    authorizer = control(tmp_path).authorizer
    assert authorizer is not None
    assert authorizer.observe_allowed is None, "nobody wants to hear of it, so it costs nothing"
    write(authorizer, session_of())
    write(authorizer, session_of(), "payments")
    authorizer.operations(session_of(), ApiKey.METADATA, Resource.TOPIC, "payments")
    assert [record.levelname for record in caplog.records] == ["INFO"]
    caplog.clear()
    caplog.set_level(logging.DEBUG, LOGGER_NAME)
    authorizer = control(tmp_path).authorizer
    assert authorizer is not None
    write(authorizer, session_of())
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
