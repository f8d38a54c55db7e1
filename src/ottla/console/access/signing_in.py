"""The pages of signing in and out, by password and by an identity provider."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl

import jinja2
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.console.access.credentials import SignInRefused
from ottla.console.access.gate import SIGN_IN, SIGN_OUT, Gate, Refused, address_of
from ottla.console.access.guarding import foreign_site, safe_path
from ottla.console.access.oidc import Oidc, OidcFailed, Person
from ottla.console.access.roles import Role, highest

OIDC_START, OIDC_BACK = "/oidc/start", "/oidc/callback"
BODY_BYTES_MAX = 16 * 1024
OIDC_COOKIE = "ottla-oidc"
OIDC_SECONDS = 600

_pages = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True)

View = Callable[[Request], Awaitable[Response]]


def routes(gate: Gate) -> Sequence[BaseRoute]:
    """None where nobody has to sign in."""
    if gate.settings.is_open:
        return ()
    pages = _Pages(gate)
    made = [
        Route(SIGN_IN, pages.show, methods=["GET"]),
        Route(SIGN_IN, pages.sign_in, methods=["POST"]),
        Route(SIGN_OUT, pages.sign_out, methods=["POST"]),
    ]
    if gate.oidc is not None:
        provider = _ProviderPages(gate, gate.oidc, pages)
        made += [Route(OIDC_START, provider.start), Route(OIDC_BACK, provider.back)]
    return made


class _Pages:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def show(self, request: Request) -> Response:
        self._gate.check_host(request)
        return self.page(request, safe_path(request.query_params.get("next", "/")))

    async def sign_in(self, request: Request) -> Response:
        gate = self._gate
        gate.check_host(request)
        foreign = foreign_site(request.headers)
        if foreign is not None:
            raise Refused(HTTPStatus.FORBIDDEN, f"the request was refused: {foreign}")
        fields = await _small_form(request)
        name, next_path = fields.get("name", "").strip(), safe_path(fields.get("next", "/"))
        cluster = fields.get("cluster") or next(iter(gate.settings.broker_login), "")
        try:
            found = await gate.credentials.check(name, fields.get("password", ""), cluster, address_of(request))
        except SignInRefused as refusal:
            gate.tell(request, "sign in", "refused", refusal.words, None, name)
            return self.page(request, next_path, refusal.words, refusal.status, name, refusal.headers)
        gate.sessions.end(gate.session_id(request))
        made, session = gate.sessions.begin(
            name, found.role, found.way, gate.now(), cluster=found.cluster, login=found.login
        )
        gate.tell(request, "sign in", "done", "", session)
        response = RedirectResponse(next_path, HTTPStatus.SEE_OTHER)
        gate.set_cookie(response, made)
        return gate.finish(request, response)

    async def sign_out(self, request: Request) -> Response:
        gate = self._gate
        gate.check_host(request)
        made = gate.session_id(request)
        session = gate.sessions.find(made, gate.now())
        if session is not None:
            await gate.check_change(request, session, is_program=False)
            gate.sessions.end(made)
            gate.tell(request, "sign out", "done", "", session)
        response = RedirectResponse(SIGN_IN, HTTPStatus.SEE_OTHER)
        response.delete_cookie(gate.cookie, path="/", secure=gate.settings.secure, httponly=True, samesite="strict")
        return gate.finish(request, response)

    def page(
        self,
        request: Request,
        next_path: str,
        error: str = "",
        status: int = HTTPStatus.OK,
        name: str = "",
        headers: Mapping[str, str] | None = None,
        go_to: str = "",
    ) -> Response:
        settings = self._gate.settings
        html = _pages.get_template("sign_in.html").render(
            next_path=next_path,
            error=error,
            name=name[:200],
            go_to=go_to,
            clusters=list(settings.broker_login),
            by_password=bool(settings.file.users or settings.broker_login),
            by_provider=self._gate.oidc is not None,
        )
        return self._gate.finish(request, Response(html, status, headers, media_type="text/html"))


class _ProviderPages:
    def __init__(self, gate: Gate, oidc: Oidc, pages: _Pages) -> None:
        self._gate, self._oidc, self._pages = gate, oidc, pages

    async def start(self, request: Request) -> Response:
        self._gate.check_host(request)
        next_path = safe_path(request.query_params.get("next", "/"))
        try:
            url, sign_in = await self._oidc.begin(next_path)
        except OidcFailed as error:
            return self._pages.page(request, next_path, str(error), HTTPStatus.BAD_GATEWAY)
        response = RedirectResponse(url, HTTPStatus.SEE_OTHER)
        # The browser comes back from another site: a strict cookie would stay behind.
        response.set_cookie(
            OIDC_COOKIE, sign_in.state, max_age=OIDC_SECONDS, path=OIDC_BACK, httponly=True, samesite="lax",
            secure=self._gate.settings.secure,
        )  # fmt: skip
        return self._gate.finish(request, response)

    async def back(self, request: Request) -> Response:
        gate = self._gate
        gate.check_host(request)
        try:
            person, next_path = await self._oidc.finish(request.query_params, request.cookies.get(OIDC_COOKIE, ""))
        except OidcFailed as error:
            gate.tell(request, "sign in", "refused", str(error), None)
            return self._pages.page(request, "/", str(error), HTTPStatus.UNAUTHORIZED)
        role = self._role(person)
        if role is None:
            words = f"you are known as {person.name}, and none of your groups has a role here"
            gate.tell(request, "sign in", "refused", words, None, person.name)
            return self._pages.page(request, next_path, words, HTTPStatus.FORBIDDEN)
        gate.sessions.end(gate.session_id(request))
        made, session = gate.sessions.begin(person.name, role, "oidc", gate.now())
        gate.tell(request, "sign in", "done", "", session)
        # A redirect would still count as coming from the provider, and the new cookie would not be sent: a page of ours
        # sends the browser on.
        response = self._pages.page(request, next_path, go_to=next_path)
        gate.set_cookie(response, made)
        response.delete_cookie(OIDC_COOKIE, path=OIDC_BACK)
        return response

    def _role(self, person: Person) -> Role | None:
        groups = self._gate.settings.file.groups
        found = highest([groups[group] for group in person.groups if group in groups])
        return found if found is not None else self._gate.settings.oidc_role


async def _small_form(request: Request) -> dict[str, str]:
    """Whoever is not known yet sends no more than a name and a password."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY_BYTES_MAX:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a sign-in has at most {BODY_BYTES_MAX} bytes")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "the body is no form of name and password") from None
