"""Keys of an issuer over https: new ones are found, and an issuer that is ill is neither believed nor pressed."""

import asyncio
import itertools
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from joserfc.jwk import KeySet, RSAKey
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from tests.virtual_time import run_virtually

from ottla.http.address import HttpAddress
from ottla.http.application import Served, application
from ottla.http.limits import HttpLimits
from ottla.http.thread import HttpThread
from ottla.security import jwks
from ottla.security.jwks import KeyKeeper, KeySource, NoKeys, read_keys
from ottla.testing.tls import Certificates
from ottla.tls.authority import LOCAL_HOSTS

PATIENCE_S = 30.0


class Issuer:
    """Publishes its keys at /jwks, and can be told to misbehave."""

    def __init__(self) -> None:
        self.url = ""
        self.asked = 0
        self.answer = "keys"
        self.keys = [RSAKey.generate_key(2048, {"kid": "first"})]

    def served(self) -> Served:
        return application([Route("/jwks", self._keys)])

    async def _keys(self, _: Request) -> Response:
        self.asked += 1
        match self.answer:
            case "nothing":
                await asyncio.Event().wait()
            case "byte by byte":
                return StreamingResponse(self._drops())
            case "too much":
                return Response(b" " * (jwks.ANSWER_BYTES_MAX + 1))
            case "an error":
                return Response("broken", 500)
        public = KeySet([RSAKey.import_key(key.as_dict(private=False)) for key in self.keys])
        return Response(json.dumps(public.as_dict()))

    async def _drops(self) -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.02)


@contextmanager
def serving(certificates: Certificates) -> Iterator[Issuer]:
    issuer = Issuer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.pem("issuer", LOCAL_HOSTS))
    server = HttpThread(
        issuer.served, HttpAddress("127.0.0.1", 0), limits=HttpLimits(stop_seconds_max=0.2), tls=context
    )
    server.start()
    issuer.url = f"{server.url}/jwks"
    with closing(server):
        yield issuer


@pytest.fixture
def issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    certificates = Certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.ca))  # what the system trusts
    with serving(certificates) as found:
        yield found


def names(keys: KeySet) -> list[str | None]:
    return [key.kid for key in keys.keys]


def test_a_key_that_is_missing_is_found_at_the_next_look(issuer: Issuer) -> None:
    async def work() -> None:
        keeper = KeyKeeper(KeySource(issuer.url, 3600.0, 1.0, 1.0))
        keeper.start()
        async with asyncio.timeout(PATIENCE_S):
            while not keeper.reads:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert names(keeper.keys) == ["first"]
            issuer.keys.append(RSAKey.generate_key(2048, {"kid": "second"}))
            for _ in range(100):
                keeper.missing("second")
            while keeper.reads < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert names(keeper.keys) == ["first", "second"]
        assert issuer.asked == 2, "a hundred who ask for the same key are one look"
        await keeper.stop()

    asyncio.run(work())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("too much", "more than 1048576 bytes"),
        ("nothing", "timed out"),
        ("byte by byte", "the answer takes longer than 0.3 s"),
        ("an error", "Internal Server Error"),
    ],
)
def test_an_issuer_that_is_ill_is_not_waited_for(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, answer: str, why: str
) -> None:
    assert names(read_keys(issuer.url)) == ["first"]
    issuer.answer = answer
    if answer != "too much":
        monkeypatch.setattr(jwks, "ANSWER_SECONDS_MAX", 0.3)
    with pytest.raises(NoKeys, match=why):
        read_keys(issuer.url)


def test_an_issuer_of_another_authority_is_not_believed(issuer: Issuer, tmp_path: Path) -> None:
    with serving(Certificates(tmp_path / "strangers")) as stranger, pytest.raises(NoKeys, match="CERTIFICATE_VERIFY"):
        read_keys(stranger.url)
    assert stranger.asked == 0


def test_after_failures_it_is_asked_less_and_less_and_keys_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    good = KeySet([RSAKey.generate_key(2048, {"kid": "first"})])
    asked: list[float] = []
    is_ill = [False]

    def read(url: str) -> KeySet:
        asked.append(asyncio.get_running_loop().time())
        if is_ill[0]:
            raise NoKeys(f"{url}: away")
        return good

    monkeypatch.setattr(jwks, "read_keys", read)

    async def work() -> None:
        keeper = KeyKeeper(KeySource("https://issuer.example/jwks", 60.0, 1.0, 10.0))
        keeper.start()
        await asyncio.sleep(30)
        is_ill[0] = True
        await asyncio.sleep(61)  # the next look fails at 60 s, and those at 61, 63, 67, 75, 85, ...
        for _ in range(50):
            keeper.missing("new")
            await asyncio.sleep(0.02)
        assert names(keeper.keys) == ["first"], "what was read stays good"
        is_ill[0] = False
        await asyncio.sleep(20)
        await keeper.stop()

    run_virtually(work())
    pauses = [round(later - earlier) for earlier, later in itertools.pairwise(asked)]
    assert pauses == [60, 1, 2, 4, 8, 10, 10]
