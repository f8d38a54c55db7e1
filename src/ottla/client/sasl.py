"""The SASL exchanges: what the client says, given what the broker said. The wire around them is the connection's.

An exchange is a generator: it yields what to send, is sent the broker's answer, and ends when the broker is convinced
(and, for SCRAM, has shown that it knows the password too).
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
from collections.abc import Generator, Mapping
from types import MappingProxyType

from ottla.client import kerberos
from ottla.client.errors import AuthenticationFailed
from ottla.client.security import GSSAPI, OAUTHBEARER, PLAIN, SCRAM_MECHANISMS, OAuth, Sasl
from ottla.tls.trusting import trusting

Exchange = Generator[bytes, bytes, None]

ITERATIONS_MIN = 4096
NONCE_BYTES = 24
TOKEN_TIMEOUT_S = 20.0
TOKEN_LIFE_SHARE = 0.8
"""A token is asked for anew after this share of its life."""

_tokens: dict[OAuth, tuple[str, float]] = {}


async def exchange(sasl: Sasl, host: str) -> Exchange:
    """The exchange for a connection that is being opened; asks for a token first, where one is needed."""
    if sasl.mechanism == PLAIN:
        return plain(sasl.username, sasl.password)
    if sasl.mechanism in SCRAM_MECHANISMS:
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        extensions = {"tokenauth": "true"} if sasl.by_token else {}
        return scram(SCRAM_MECHANISMS[sasl.mechanism], sasl.username, sasl.password, nonce, extensions)
    if sasl.mechanism == GSSAPI:
        assert sasl.kerberos is not None
        return await asyncio.to_thread(kerberos.begin, sasl.kerberos, host)
    assert sasl.mechanism == OAUTHBEARER
    assert sasl.oauth is not None
    return oauthbearer(await _token(sasl.oauth))


def go_on(exchange: Exchange, answer: bytes) -> bytes | None:
    """What to say next; None at the end."""
    try:
        return exchange.send(answer)
    except StopIteration:
        return None


def plain(username: str, password: str) -> Exchange:
    yield f"\0{username}\0{password}".encode()


def oauthbearer(token: str) -> Exchange:
    answer = yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()
    if answer:  # the broker says why not, and waits for a byte before it says so in the protocol's own words
        yield b"\x01"
        raise AuthenticationFailed(f"the token was refused: {answer.decode(errors='replace')}")


def scram(
    digest: str, username: str, password: str, nonce: str, extensions: Mapping[str, str] = MappingProxyType({})
) -> Exchange:
    """RFC 5802 without channel binding, which Kafka does not use."""
    name = username.replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}" + "".join(f",{key}={value}" for key, value in extensions.items())
    server_first = (yield f"n,,{client_first}".encode()).decode()
    said = _attributes(server_first)
    if not said.get("r", "").startswith(nonce) or len(said.get("r", "")) == len(nonce):
        raise AuthenticationFailed("the broker answered with a nonce that is not ours: somebody may be in between")
    try:
        salt, iterations = base64.b64decode(said["s"]), int(said["i"])
    except (KeyError, ValueError):
        raise AuthenticationFailed(f"the broker's SCRAM answer does not parse: {server_first}") from None
    if iterations < ITERATIONS_MIN:
        raise AuthenticationFailed(f"the broker asks for {iterations} iterations only; {ITERATIONS_MIN} are the least")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
    client_final = f"c=biws,r={said['r']}"
    message = f"{client_first},{server_first},{client_final}".encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
    server_final = _attributes((yield f"{client_final},p={proof}".encode()).decode())
    if "e" in server_final:
        raise AuthenticationFailed(f"the broker refused: {server_final['e']}")
    expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
    if not hmac.compare_digest(server_final.get("v", ""), base64.b64encode(expected).decode()):
        raise AuthenticationFailed("the broker does not know the password: it is not the one that it claims to be")


def _attributes(message: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.split(","))
    return {name: value for name, _, value in pairs}


async def _token(oauth: OAuth) -> str:
    if oauth.token is not None:
        return oauth.token
    known = _tokens.get(oauth)
    if known is not None and time.monotonic() < known[1]:
        return known[0]
    token, life_s = await asyncio.to_thread(_ask_for_token, oauth)
    _tokens[oauth] = (token, time.monotonic() + life_s * TOKEN_LIFE_SHARE)
    return token


def _ask_for_token(oauth: OAuth) -> tuple[str, float]:
    """The client-credentials grant of OAuth 2: id and secret against a token and its life in seconds."""
    assert oauth.endpoint_url is not None
    form = {"grant_type": "client_credentials"} | ({"scope": oauth.scope} if oauth.scope else {})
    basic = base64.b64encode(f"{oauth.client_id}:{oauth.client_secret}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 (the settings allow http and https only)
        oauth.endpoint_url,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": f"Basic {basic}", "Accept": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=TOKEN_TIMEOUT_S, context=trusting()) as response:  # noqa: S310
            answer = json.load(response)
        return str(answer["access_token"]), float(answer.get("expires_in", 300))
    except (urllib.error.URLError, TimeoutError) as error:
        raise AuthenticationFailed(f"no token from {oauth.endpoint_url}: {error}") from error
    except (ValueError, KeyError, TypeError):
        raise AuthenticationFailed(f"{oauth.endpoint_url} answered without an access_token") from None
