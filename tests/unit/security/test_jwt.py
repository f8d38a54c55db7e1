"""Tokens: only those that an issuer we trust has signed, for us, and that are valid now."""

import base64
import json
import random
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from ottla.security.holder import Holder
from ottla.security.jwt import TokenRules, Untrusted, check_signed, check_unsigned

NOW = 1_700_000_000
RULES = TokenRules("https://issuer", frozenset({"kafka", "other"}), 30)
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
STRANGER = RSAKey.generate_key(2048, {"kid": "rsa"})
SHARED = OctKey.generate_key(256, {"kid": "shared"})
KEYS = KeySet([RSAKey.import_key(RSA.as_dict(private=False)), ECKey.import_key(EC.as_dict(private=False)), SHARED])


def claims(**changed: Any) -> dict[str, Any]:
    usual = {"iss": "https://issuer", "aud": "kafka", "sub": "alice", "iat": NOW - 10, "exp": NOW + 300}
    return {name: value for name, value in (usual | changed).items() if value is not ...}


def signed(content: dict[str, Any], key: Any = RSA, **header: Any) -> str:
    algorithm = {"RSA": "RS256", "EC": "ES256", "oct": "HS256"}[key.key_type]
    return jwt.encode({"alg": algorithm, "kid": key.kid} | header, content, key)


def handmade(header: dict[str, Any], content: dict[str, Any], signature: str = "") -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, content))
    return ".".join((*parts, signature))


def check(token: str, rules: TokenRules = RULES, missing: list[str] | None = None) -> Holder:
    return check_signed(token, KEYS, rules, NOW * 1000, (missing if missing is not None else []).append)


@pytest.mark.parametrize("key", [RSA, EC], ids=["RS256", "ES256"])
def test_a_token_in_order(key: Any) -> None:
    assert check(signed(claims(), key)) == Holder("alice", (NOW + 300) * 1000)


@pytest.mark.parametrize(
    "content",
    [
        claims(aud=["a", "other"]),
        claims(exp=NOW - 29, iat=NOW - 99),
        claims(iat=NOW + 29),
        claims(nbf=NOW + 29),
        claims(scope="a b"),
        claims(scope=["a", "b"]),
        claims(sub=" alice "),
    ],
)
def test_clocks_may_differ_a_little_and_audiences_may_be_several(content: dict[str, Any]) -> None:
    assert check(signed(content)).user == "alice"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (claims(exp=NOW - 31), "expired"),
        (claims(iat=NOW + 31), "in the future"),
        (claims(nbf=NOW + 31), "not valid yet"),
        (claims(exp=NOW + 400 * 24 * 3600), "more than a year"),
        (claims(exp=NOW, iat=NOW + 10), "makes no sense"),
        (claims(exp=...), "exp"),
        (claims(iat=...), "iat"),
        (claims(exp="tomorrow"), "is not a time"),
        (claims(exp=True), "is not a time"),
        (claims(exp=1e300), "out of all bounds"),
        (claims(iss="https://elsewhere"), "is from"),
        (claims(iss=...), "is from"),
        (claims(aud="somebody"), "is for 'somebody'"),
        (claims(aud=["somebody", 7]), "is for"),
        (claims(aud=...), "is for"),
        (claims(sub=...), "whom it is about"),
        (claims(sub=""), "whom it is about"),
        (claims(sub=17), "whom it is about"),
        (claims(scope=17), "scope"),
    ],
)
def test_what_a_token_says_has_to_fit(content: dict[str, Any], why: str) -> None:
    with pytest.raises(Untrusted, match=why):
        check(signed(content))


def test_a_token_for_somebody_is_not_ours_if_nobody_says_so() -> None:
    nobody = RULES._replace(audiences=frozenset())
    assert check(signed(claims(aud=...)), nobody).user == "alice"
    with pytest.raises(Untrusted, match=r"expected\.audience"):
        check(signed(claims()), nobody)


def test_the_user_may_be_in_another_claim() -> None:
    assert check(signed(claims(client="bob")), RULES._replace(subject_claim="client")).user == "bob"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        (handmade({"alg": "none"}, claims()), "no signature"),
        (handmade({"alg": "NONE", "kid": "rsa"}, claims()), "no signature"),
        (handmade({"alg": "none", "kid": "rsa"}, claims(), "AAAA"), "no signature"),
        (handmade({"kid": "rsa"}, claims()), "no signature"),
        (signed(claims(), SHARED), "no signature by a key pair"),
        (handmade({"alg": "HS256", "kid": "rsa"}, claims(), "A" * 43), "no signature by a key pair"),
        (signed(claims(), STRANGER), "does not fit"),
        (signed(claims(), EC, kid="rsa"), "does not fit"),
        (signed(claims(), RSA, kid="ec"), "does not fit"),
        (signed(claims(), RSA, kid="shared"), "not known"),
        (signed(claims(), RSA, kid="new"), "not known"),
        (handmade({"alg": "RS256", "kid": "rsa"}, claims()), "does not fit"),
        (handmade({"alg": "RS256", "kid": ["rsa"]}, claims()), "which key"),
        (handmade({"alg": "RS256"}, claims()), "which key"),
        ("", "three parts"),
        ("a.b", "three parts"),
        ("a.b.c.d.e", "three parts"),
        ("!.!.!", "not JSON|base64"),
        (signed(claims()) + "A" * 70_000, "characters"),
    ],
)
def test_signatures_that_are_none(token: str, why: str) -> None:
    with pytest.raises(Untrusted, match=why):
        check(token)


def test_a_key_that_is_not_known_is_asked_for() -> None:
    missing: list[str] = []
    with pytest.raises(Untrusted):
        check(signed(claims(), RSA, kid="new"), missing=missing)
    assert missing == ["new"]


def test_unsigned_tokens_are_for_trying_things_out() -> None:
    assert check_unsigned(handmade({"alg": "none"}, claims()), RULES, NOW * 1000).user == "alice"
    for token in (signed(claims()), handmade({"alg": "none"}, claims(), "AAAA"), handmade({}, claims()), "x"):
        with pytest.raises(Untrusted):
            check_unsigned(token, RULES, NOW * 1000)


def test_mutated_tokens_are_refused_in_words(pytestconfig: pytest.Config) -> None:
    chance = random.Random(14)
    right = signed(claims(), EC)
    alphabet = "ABCabc012-_.=+/ \n\0ä"
    for _ in range(pytestconfig.getoption("--hostile-inputs") // 4):
        place = chance.randrange(len(right))
        inserted = "".join(chance.choices(alphabet, k=chance.randrange(4)))
        token = right[:place] + inserted + right[place + chance.randrange(4) :]
        # The last character of a signature carries two bits that no byte is made of.
        if token.rstrip("=")[:-1] == right[:-1]:
            continue
        with pytest.raises(Untrusted):
            check(token)
