"""The gate: who asks, may they, and does the request come from our own pages?

Browsers carry a session's cookie, and for every change the session's token; programs send name and password with each
request (`Authorization: Basic`), which no other site can make a browser do. Where nobody has to sign in, programs say
that they are one (`X-Ottla-Program: NAME`): another site's page cannot set a header without asking first.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ottla.console.access.audit import ConsoleAudit
from ottla.console.access.credentials import Credentials, SignInRefused
from ottla.console.access.guarding import foreign_site, is_our_host
from ottla.console.access.headers import secure
from ottla.console.access.oidc import Oidc, OidcSettings
from ottla.console.access.roles import BUILT_IN, Role
from ottla.console.access.sessions import IDLE_SECONDS, LIFE_SECONDS, Session, Sessions
from ottla.console.access.users import AccessFile
from ottla.console.asking import Caller, Right

SIGN_IN, SIGN_OUT = "/sign-in", "/sign-out"
CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
PROGRAM_HEADER = "x-ottla-program"
FRAGMENT_HEADER = "x-ottla-fragment"
API = "/api/"
EVENTS = "/events"
"""Open pages follow it, and renew themselves when it says so."""
PROGRAM_SECONDS = 300.0
PROGRAMS_MAX = 1_000
COOKIE_CHARACTERS_MAX = 200


class AccessSettings(NamedTuple):
    file: AccessFile = AccessFile()
    broker_login: Mapping[str, Mapping[str, str]] = {}
    """Clusters whose users may sign in, with the settings of the console's connections to them."""
    broker_role: Role = BUILT_IN["admin"]
    """Of the brokers' own users: what they may do, the brokers' ACLs decide."""
    oidc: OidcSettings | None = None
    oidc_role: Role | None = None
    """Of those in no group that has a role; None: they do not come in."""
    open_role: Role = BUILT_IN["admin"]
    """Of everybody, where there is no way to sign in."""
    hosts: frozenset[str] = frozenset()
    """Names under which browsers reach the console, besides localhost and addresses."""
    secure: bool = False
    """Browsers come over TLS: cookies are for TLS alone."""
    read_only: bool = False
    idle_seconds: float = IDLE_SECONDS
    life_seconds: float = LIFE_SECONDS

    @property
    def is_open(self) -> bool:
        return not (self.file.users or self.broker_login or self.oidc)


class Refused(HTTPException):
    """With a status and a sentence; of a page without a session, the way to the sign-in."""


class Gate:
    def __init__(
        self,
        settings: AccessSettings,
        audit: ConsoleAudit | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        failure_seconds: float = 1.0,
    ) -> None:
        self.settings = settings
        self.sessions = Sessions(idle_seconds=settings.idle_seconds, life_seconds=settings.life_seconds)
        self.credentials = Credentials(
            settings.file, settings.broker_login, settings.broker_role, now=now, failure_seconds=failure_seconds
        )
        self.oidc = Oidc(settings.oidc) if settings.oidc is not None else None
        self.audit = audit
        self.now = now
        self.cookie = "__Host-ottla-session" if settings.secure else "ottla-session"
        self._key = secrets.token_bytes(32)
        self._programs: dict[bytes, tuple[Session, float]] = {}

    # What the application asks for.

    async def admit(self, request: Request, needed: Right, changes: bool) -> Caller:
        """Who asks. Refused if nobody is known, if they may not, or if a change does not come from our pages."""
        self.check_host(request)
        session, is_program = await self._who(request)
        try:
            self._check_reach(request, session)
            if session.right < needed:
                raise Refused(HTTPStatus.FORBIDDEN, f"this needs the rights of {needed.name.lower()}, and you have not")
            if changes:
                if self.settings.read_only:
                    raise Refused(HTTPStatus.FORBIDDEN, "this console is read-only: it changes nothing for anybody")
                await self.check_change(request, session, is_program=is_program)
        except Refused as refusal:
            if changes:
                self.tell(request, "change", "refused", refusal.detail, session)
            raise
        return session

    def routes(self) -> Sequence[BaseRoute]:
        from ottla.console.access.signing_in import routes  # noqa: PLC0415 - it stands on this module

        return routes(self)

    def note(self, caller: Caller, request: Request, entry_summary: str, words: str, ok: bool) -> None:
        session = caller if isinstance(caller, Session) else None
        self.tell(request, entry_summary, "done" if ok else "failed", words, session)

    def finish(self, request: Request, response: Response) -> Response:
        """Every answer passes here: headers against other sites, and the cookie of a browser that has none yet."""
        made = getattr(request.state, "ottla_cookie", None)
        if made is not None:
            self.set_cookie(response, made)
        return secure(response)

    def close(self) -> None:
        if self.audit is not None:
            self.audit.close()

    # The parts of it.

    def check_host(self, request: Request) -> None:
        if not is_our_host(request.headers.get("host"), self.settings.hosts):
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "the console does not go by that name: use localhost or its address, or start it with --public-url",
            )

    async def check_change(self, request: Request, session: Session, *, is_program: bool) -> None:
        foreign = foreign_site(request.headers)
        if foreign is not None:
            raise Refused(HTTPStatus.FORBIDDEN, f"the request was refused: {foreign}")
        if is_program:
            return
        given = request.headers.get(CSRF_HEADER) or await _form_field(request, CSRF_FIELD)
        if not hmac.compare_digest(given.encode("utf-8", "replace"), session.csrf.encode()):
            raise Refused(
                HTTPStatus.FORBIDDEN, "the form is of another session, or of one that is over: load the page again"
            )

    def tell(
        self, request: Request, action: str, outcome: str, words: str, session: Session | None, name: str = ""
    ) -> None:
        """A line of the audit log."""
        if self.audit is None:
            return
        self.audit.note(
            user=session.name if session is not None else name,
            role=session.role.name if session is not None else "",
            way=session.way if session is not None else "",
            host=address_of(request),
            cluster=str(request.path_params.get("cluster", "")),
            action=action,
            request=f"{request.method} {request.url.path}",
            outcome=outcome,
            words=words,
        )

    def set_cookie(self, response: Response, value: str) -> None:
        response.set_cookie(self.cookie, value, path="/", httponly=True, samesite="strict", secure=self.settings.secure)

    def session_id(self, request: Request) -> str:
        found = request.cookies.get(self.cookie, "")
        return found if len(found) <= COOKIE_CHARACTERS_MAX else ""

    # Who it is.

    async def _who(self, request: Request) -> tuple[Session, bool]:
        """The session, and whether it is a program's."""
        now = self.now()
        self.sessions.end_old(now)
        if self.settings.is_open:
            return self._anybody(request), PROGRAM_HEADER in request.headers
        given = request.headers.get("authorization", "")
        if given[:6].lower() == "basic ":
            return await self._program(request, given[6:].strip()), True
        by_itself = FRAGMENT_HEADER in request.headers or request.url.path.endswith(EVENTS)
        session = self.sessions.find(self.session_id(request), now, by_itself=by_itself)
        if session is None:
            raise self._nobody(request)
        return session, False

    def _anybody(self, request: Request) -> Session:
        """Without sign-in a browser's token follows from a random cookie: nothing has to be kept."""
        browser = self.session_id(request)
        if not browser:
            browser = secrets.token_urlsafe(32)
            request.state.ottla_cookie = browser
        token = hmac.digest(self._key, browser.encode("utf-8", "replace"), "sha256").hex()
        now = self.now()
        return Session("anonymous", self.settings.open_role, "open", token, now, now)

    async def _program(self, request: Request, encoded: str) -> Session:
        key, now = hashlib.sha256(encoded.encode("utf-8", "replace")).digest(), self.now()
        known = self._programs.get(key)
        if known is not None and now < known[1]:
            return known[0]
        self._programs = {each: found for each, found in self._programs.items() if now < found[1]}
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            name, colon, password = "", "", ""
        if not colon:
            raise Refused(HTTPStatus.UNAUTHORIZED, "the Authorization header is no name and password in base64")
        cluster = str(request.path_params.get("cluster", "")) or next(iter(self.settings.broker_login), "")
        try:
            found = await self.credentials.check(name, password, cluster, address_of(request))
        except SignInRefused as refusal:
            self.tell(request, "sign in", "refused", refusal.words, None, name)
            raise Refused(refusal.status, refusal.words, refusal.headers) from None
        _, session = Sessions(life_seconds=PROGRAM_SECONDS).begin(
            name, found.role, found.way, now, cluster=found.cluster, login=found.login
        )
        if len(self._programs) < PROGRAMS_MAX:
            self._programs[key] = (session, now + PROGRAM_SECONDS)
        return session

    def _nobody(self, request: Request) -> Refused:
        words = "sign in first"
        for_script = FRAGMENT_HEADER in request.headers or "event-stream" in request.headers.get("accept", "")
        if request.url.path.startswith(API) or for_script or request.method not in {"GET", "HEAD"}:
            return Refused(HTTPStatus.UNAUTHORIZED, words)
        wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return Refused(HTTPStatus.SEE_OTHER, words, {"Location": f"{SIGN_IN}?next={quote(wanted, safe='')}"})

    def _check_reach(self, request: Request, session: Session) -> None:
        """Whether the address is one that this caller may look at at all."""
        cluster = request.path_params.get("cluster")
        if session.cluster is not None and cluster is not None and cluster != session.cluster:
            raise Refused(
                HTTPStatus.FORBIDDEN, f"you signed in as a user of {session.cluster}: for {cluster}, sign in there"
            )
        topic = request.path_params.get("topic")
        if topic is not None and not session.sees(str(topic)):
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such topic, or it is not yours to see")


def address_of(request: Request) -> str:
    """Who is at the other end of the connection. What a header claims of it anybody could write."""
    return request.client.host if request.client is not None else ""


async def _form_field(request: Request, name: str) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return ""
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=5000)
    except ValueError:
        return ""
    return next((value for key, value in pairs if key == name), "")
