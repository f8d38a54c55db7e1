"""Signing in at an identity provider: OpenID Connect, authorization code with PKCE, state and nonce.

What the provider says of itself is read once (discovery). Its ID token is believed if one of its keys signed it, if it
was made for us and for this very sign-in. Questions to the provider block: they are asked in a thread.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import secrets
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.model.errors import OttlaError
from ottla.tls.trusting import trusting

if TYPE_CHECKING:
    from joserfc.jwk import KeySet

ANSWER_SECONDS_MAX = 10.0
ANSWER_BYTES_MAX = 1024 * 1024
WAITING_SECONDS_MAX = 600.0
WAITING_MAX = 1_000
KEYS_SECONDS = 60.0
"""Keys are read again for a token with an unknown one, no more often than this."""
SKEW_SECONDS = 60
GROUPS_MAX = 1_000


class OidcSettings(NamedTuple):
    issuer: str
    client_id: str
    client_secret: str | None = None
    """None: a public client, which PKCE alone protects."""
    redirect_url: str = ""
    """Where the provider sends browsers back to: https://CONSOLE/oidc/callback."""
    scopes: str = "openid profile email groups"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"

    def __repr__(self) -> str:
        return f"OidcSettings(issuer={self.issuer!r}, client_id={self.client_id!r})"  # no secrets


class OidcFailed(OttlaError):
    """The provider could not be asked, or what it says cannot be believed."""


class SignIn(NamedTuple):
    """A sign-in that is under way: what only this browser and we know."""

    state: str
    nonce: str
    verifier: str
    next_path: str
    began: float


class Person(NamedTuple):
    name: str
    groups: tuple[str, ...]


class Provider(NamedTuple):
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Oidc:
    def __init__(self, settings: OidcSettings, *, now: Callable[[], float] = time.time) -> None:
        where = urllib.parse.urlsplit(settings.issuer)
        is_local = where.scheme == "http" and where.hostname in {"127.0.0.1", "localhost", "::1"}
        if where.scheme != "https" and not is_local:
            raise OidcFailed(f"the issuer's address begins with https://, unlike `{settings.issuer}`")
        self._settings = settings
        self._now = now
        self._provider: Provider | None = None
        self._keys: KeySet | None = None
        self._keys_read = float("-inf")
        self._waiting: dict[str, SignIn] = {}

    async def begin(self, next_path: str) -> tuple[str, SignIn]:
        """Where to send the browser, and what its cookie has to bring back (`state`). OidcFailed."""
        provider = await self._discovered()
        now = self._now()
        self._waiting = {key: each for key, each in self._waiting.items() if now - each.began < WAITING_SECONDS_MAX}
        while len(self._waiting) >= WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]
        made = SignIn(secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(48), next_path, now)
        self._waiting[made.state] = made
        challenge = base64.urlsafe_b64encode(hashlib.sha256(made.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": self._settings.redirect_url,
            "scope": self._settings.scopes,
            "state": made.state,
            "nonce": made.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        joint = "&" if "?" in provider.authorization_endpoint else "?"
        return provider.authorization_endpoint + joint + urllib.parse.urlencode(query), made

    async def finish(self, query: Mapping[str, str], cookie_state: str) -> tuple[Person, str]:
        """Who it is, and where they wanted to go. `query` is what the browser came back with. OidcFailed."""
        state = query.get("state", "")
        sign_in = self._waiting.pop(state, None)
        if sign_in is None or self._now() - sign_in.began > WAITING_SECONDS_MAX:
            raise OidcFailed("this sign-in is over, or was never begun here: begin again")
        if not hmac.compare_digest(cookie_state.encode(), state.encode()):
            raise OidcFailed("this sign-in was begun in another browser: begin again")
        if "error" in query:
            raise OidcFailed(f"the identity provider refuses: {query.get('error_description') or query['error']}"[:300])
        code = query.get("code", "")
        if not code:
            raise OidcFailed("the identity provider sent no code")
        answer = await asyncio.to_thread(self._redeem, await self._discovered(), code, sign_in)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise OidcFailed("the identity provider sent no ID token")
        return self._person(await self._claims(token, sign_in)), sign_in.next_path

    # What the provider says.

    async def _discovered(self) -> Provider:
        if self._provider is None:
            self._provider = await asyncio.to_thread(self._discover)
        return self._provider

    def _discover(self) -> Provider:
        issuer = self._settings.issuer
        url = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
        found = _ask(urllib.request.Request(url, headers={"Accept": "application/json"}))  # noqa: S310 (see __init__)
        if found.get("issuer") != issuer:
            raise OidcFailed(f"{url} says that it is {str(found.get('issuer'))[:200]!r}, not {issuer!r}")
        endpoints = []
        for name in Provider._fields:
            endpoint = found.get(name)
            if not isinstance(endpoint, str) or not endpoint.startswith(("https://", issuer.split("://")[0] + "://")):
                raise OidcFailed(f"{url} does not say a safe {name}")
            endpoints.append(endpoint)
        return Provider._make(endpoints)

    def _redeem(self, provider: Provider, code: str, sign_in: SignIn) -> dict[str, Any]:
        """The code against an ID token, with the verifier whose hash was shown at the beginning."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._settings.redirect_url,
            "client_id": self._settings.client_id,
            "code_verifier": sign_in.verifier,
        }
        headers = {"Accept": "application/json"}
        if self._settings.client_secret is not None:
            parts = (self._settings.client_id, self._settings.client_secret)
            both = ":".join(urllib.parse.quote_plus(part) for part in parts)
            headers["Authorization"] = f"Basic {base64.b64encode(both.encode()).decode()}"
        data = urllib.parse.urlencode(form).encode()
        return _ask(urllib.request.Request(provider.token_endpoint, data, headers))  # noqa: S310 (as discovered)

    async def _claims(self, token: str, sign_in: SignIn) -> Mapping[str, Any]:
        from ottla.security.jwt import TokenRules, Untrusted, check_claims, signed_claims  # noqa: PLC0415

        rules = TokenRules(self._settings.issuer, (self._settings.client_id,), SKEW_SECONDS)
        missing: list[str] = []
        keys = await self._known_keys(renew=False)
        try:
            try:
                claims = signed_claims(token, keys, missing.append)
            except Untrusted:
                if not missing:
                    raise
                claims = signed_claims(token, await self._known_keys(renew=True), missing.append)
            check_claims(claims, rules, int(self._now() * 1000))
        except Untrusted as refusal:
            raise OidcFailed(f"the ID token cannot be believed: {refusal}") from None
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), sign_in.nonce.encode()):
            raise OidcFailed("the ID token cannot be believed: it is of another sign-in (nonce)")
        authorized = claims.get("azp")
        several = isinstance(claims.get("aud"), list) and len(claims["aud"]) > 1
        if (several or authorized is not None) and authorized != self._settings.client_id:
            raise OidcFailed("the ID token cannot be believed: it was made for another (azp)")
        return claims

    async def _known_keys(self, *, renew: bool) -> "KeySet":
        from ottla.security.jwks import NoKeys, read_keys  # noqa: PLC0415

        provider = await self._discovered()
        if self._keys is None or (renew and self._now() - self._keys_read > KEYS_SECONDS):
            try:
                self._keys = await asyncio.to_thread(read_keys, provider.jwks_uri)
            except NoKeys as error:
                raise OidcFailed(f"the identity provider's keys cannot be had: {error}") from None
            self._keys_read = self._now()
        return self._keys

    def _person(self, claims: Mapping[str, Any]) -> Person:
        name = claims.get(self._settings.name_claim) or claims.get("email") or claims["sub"]
        groups = claims.get(self._settings.groups_claim, [])
        if isinstance(groups, str):
            groups = groups.split()
        if not isinstance(groups, Sequence):
            groups = []
        return Person(str(name)[:200], tuple(str(group) for group in groups[:GROUPS_MAX] if isinstance(group, str)))


def _ask(request: urllib.request.Request) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(  # noqa: S310 (https, see above)
            request, timeout=ANSWER_SECONDS_MAX, context=trusting()
        ) as response:
            data = response.read(ANSWER_BYTES_MAX + 1)
        if len(data) > ANSWER_BYTES_MAX:
            raise ValueError("its answer is too large")
        found = json.loads(data)
    except urllib.error.HTTPError as error:
        raise OidcFailed(f"the identity provider answers {error.code} at {request.full_url}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise OidcFailed(f"the identity provider cannot be asked at {request.full_url}: {error}") from None
    if not isinstance(found, dict):
        raise OidcFailed(f"the identity provider answers no JSON object at {request.full_url}")
    return found
