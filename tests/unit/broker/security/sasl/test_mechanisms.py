"""The mechanisms as machines: right and wrong logins, vectors of the RFCs, and what a hostile client may try."""

import base64
import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.security.sasl.oauthbearer import BadToken, OAuthBearer
from ottla.broker.security.sasl.plain import Plain
from ottla.broker.security.sasl.scram import Known, Scram
from ottla.broker.security.sasl.scram_credentials import (
    MECHANISMS,
    SHA_256,
    SHA_512,
    IterationCounts,
    ScramMechanism,
    credential_of,
    decoy_credential,
    iterations_of,
    read_credential,
    salt_of,
    salted_password,
    write_credential,
)
from ottla.broker.security.sasl.verdicts import Accepted, Challenge, Mechanism, Refused, Verdict
from ottla.client import sasl as client
from ottla.client.errors import AuthenticationFailed
from ottla.security.holder import Holder

NOW = 1_000_000
DECOY = b"a secret of this broker"

names = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=12)
passwords = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)


def known(mechanism: ScramMechanism, user: str, password: str, iterations: int = 4096) -> Known:
    salt = b"0123456789"
    salted = salted_password(mechanism, password, salt, iterations)
    return Known(credential_of(mechanism, salted, salt, iterations), user)


def finding(entry: Known, name: str | None = None, *, tokens: bool = False) -> Callable[[str, bool], Known | None]:
    return lambda asked, by_token: entry if asked == (name or entry.user) and by_token is tokens else None


def talk(machine: Mechanism, exchange: client.Exchange) -> Verdict:
    """A client and a machine until the machine has decided, and the client has agreed."""
    verdict = machine.step(next(exchange), NOW)
    while isinstance(verdict, Challenge):
        verdict = machine.step(exchange.send(verdict.reply), NOW)
    if isinstance(verdict, Accepted):
        with pytest.raises(StopIteration):
            exchange.send(verdict.reply)
    return verdict


# -- PLAIN


@given(names, passwords)
def test_plain_lets_in_who_knows_the_password(user: str, password: str) -> None:
    machine = Plain({user: password}, DECOY)
    assert talk(machine, client.plain(user, password)) == Accepted(b"", user)
    assert isinstance(machine.step(f"\0{user}\0{password}".encode(), NOW), Refused), "one token, one login"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0" + DECOY, "Authentication failed: Invalid username or password"),
        (b"\0nobody\0" + DECOY, "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\xff\0secret", "Authentication failed: Invalid username or password"),
    ],
)
def test_plain_refuses(token: bytes, text: str) -> None:
    verdict = Plain({"alice": "secret"}, DECOY).step(token, NOW)
    assert isinstance(verdict, Refused)
    assert verdict.text == text
    assert "secret" not in verdict.why


def test_plain_takes_an_authorization_id_that_is_the_user() -> None:
    assert Plain({"alice": "secret"}, DECOY).step(b"alice\0alice\0secret", NOW) == Accepted(b"", "alice")


# -- SCRAM


def test_scram_as_in_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = credential_of(SHA_256, salted_password(SHA_256, "pencil", salt, 4096), salt, 4096)
    machine = Scram(SHA_256, finding(Known(credential, "user")), "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", DECOY)
    first = machine.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", NOW)
    assert first == Challenge(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    final = machine.step(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        NOW,
    )
    assert final == Accepted(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", "user")


@given(st.sampled_from([SHA_256, SHA_512]), names, passwords)
def test_scram_lets_in_who_knows_the_password(mechanism: ScramMechanism, user: str, password: str) -> None:
    machine = Scram(mechanism, finding(known(mechanism, user, password)), "server-nonce", DECOY)
    verdict = talk(machine, client.scram(mechanism.digest, user, password, "client-nonce"))
    assert isinstance(verdict, Accepted)
    assert (verdict.user, verdict.expires_ms, verdict.by_token) == (user, None, False)


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=str)
def test_scram_answers_who_does_not_exist_as_who_is_wrong(mechanism: ScramMechanism) -> None:
    entry = known(mechanism, "alice", "secret")
    refusals = []
    for user in ("alice", "nobody"):
        machine = Scram(mechanism, finding(entry), "server-nonce", DECOY)
        verdict = talk(machine, client.scram(mechanism.digest, user, "wrong", "client-nonce"))
        assert isinstance(verdict, Refused)
        refusals.append(verdict)
    assert refusals[0] == refusals[1]
    assert refusals[0].text == (
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism.name}"
    )


def test_a_decoy_is_always_the_same_for_a_user_and_looks_like_a_tools_credential() -> None:
    counts = IterationCounts()
    one, again = (decoy_credential(SHA_256, DECOY, "nobody", counts) for _ in range(2))
    assert one == again
    assert one != decoy_credential(SHA_256, DECOY, "other", counts)
    assert one != decoy_credential(SHA_256, b"another broker's secret", "nobody", counts)
    assert len(one.salt) == len(salt_of(bytes(range(64)))) == 26
    assert one.salt.isalnum()


def test_unknown_users_have_iterations_that_known_ones_have() -> None:
    """In the same shares, and each of them always the same: with how many a user answers does not tell who exists."""
    counts = IterationCounts([8192] * 30 + [4096] * 10)
    found = Counter(decoy_credential(SHA_256, DECOY, f"user {n}", counts).iterations for n in range(2000))
    assert set(found) == {4096, 8192}
    assert 0.68 < found[8192] / 2000 < 0.82
    assert decoy_credential(SHA_256, DECOY, "nobody", IterationCounts([16384] * 3)).iterations == 16384
    assert decoy_credential(SHA_256, DECOY, "nobody", IterationCounts()).iterations == 4096


def test_an_unknown_user_whose_iterations_change_has_another_salt_too() -> None:
    """As a known one would who has a new password; and few change when one user more is there."""
    before, after = IterationCounts([4096] * 50 + [8192] * 50), IterationCounts([4096] * 50 + [8192] * 51)
    pairs = [[decoy_credential(SHA_256, DECOY, f"user {n}", each) for each in (before, after)] for n in range(1000)]
    changed = [(old, new) for old, new in pairs if old.iterations != new.iterations]
    assert 0 < len(changed) < 30
    assert all((old.salt == new.salt) == (old.iterations == new.iterations) for old, new in pairs)


@pytest.mark.parametrize(("text", "iterations"), [("iterations=8192", 8192), ("salt=a,iterations=4096", 4096)])
def test_iterations_are_read_without_the_rest(text: str, iterations: int) -> None:
    assert iterations_of(text) == iterations
    assert iterations_of(text.replace("=", "")) is None
    assert iterations_of(f"{text}0000") is None


def test_a_recorded_login_cannot_be_played_back() -> None:
    entry = finding(known(SHA_256, "alice", "secret"))
    exchange = client.scram("sha256", "alice", "secret", "client-nonce")
    recorded = [next(exchange)]
    machine = Scram(SHA_256, entry, "nonce-1", DECOY)
    challenge = machine.step(recorded[0], NOW)
    assert isinstance(challenge, Challenge)
    recorded.append(exchange.send(challenge.reply))
    assert isinstance(machine.step(recorded[1], NOW), Accepted)
    assert isinstance(machine.step(recorded[1], NOW), Refused), "not even in the same login"
    later = Scram(SHA_256, entry, "nonce-2", DECOY)
    assert isinstance(later.step(recorded[0], NOW), Challenge)
    assert isinstance(later.step(recorded[1], NOW), Refused)


@pytest.mark.parametrize(
    "first",
    [
        b"", b"n,,", b"n,,n=alice", b"n,,r=x,n=alice", b"y,,n=alice,r=x", b"p=tls-unique,,n=alice,r=x", b"n,,n=,r=x",
        b"n,,n=alice,r=", b"n,,n=al=ice,r=x", b"n,,n=alice,r=x y", b"n,,m=ext,n=alice,r=x", b"n,a=bob,n=alice,r=x",
        b"n,,n=al\xc3\xadce,r=x", b"n,,n=alice,r=x,", b"n,,n=alice,r=x,9=9",
    ],
)  # fmt: skip
def test_scram_refuses_a_first_message_that_is_none(first: bytes) -> None:
    machine = Scram(SHA_256, finding(known(SHA_256, "alice", "secret")), "nonce", DECOY)
    assert isinstance(machine.step(first, NOW), Refused)
    assert isinstance(machine.step(b"n,,n=alice,r=x", NOW), Refused), "no second try in one login"


def _proof(machine: Scram, gs2: str = "n,,") -> str:
    exchange = client.scram("sha256", "alice", "secret", "client")
    challenge = machine.step(gs2.encode() + next(exchange).removeprefix(b"n,,"), NOW)
    assert isinstance(challenge, Challenge)
    return exchange.send(challenge.reply).decode()


@pytest.mark.parametrize(
    "change",
    [
        lambda final: final.replace("c=biws", "c=eSws"),  # y,, : the client thinks that it could bind
        lambda final: final.replace("clientserver", "clientother"),
        lambda final: final.replace("clientserver", "client"),
        lambda final: final.partition(",p=")[0],
        lambda final: final.partition(",p=")[0] + ",p=",
        lambda final: final.partition(",p=")[0] + ",p=AAAA",
        lambda final: final[:-6] + "A" + final[-5:],
        lambda final: final + ",x=y",
        lambda final: final[:-2] + chr(ord(final[-2]) ^ 1) + "=",  # bits that no byte is made of
        lambda final: "m=ext," + final,
        lambda final: "",
    ],
)
def test_scram_refuses_a_final_message_that_was_changed(change: Callable[[str], str]) -> None:
    machine = Scram(SHA_256, finding(known(SHA_256, "alice", "secret")), "server", DECOY)
    final = _proof(machine)
    assert change(final) != final
    assert isinstance(machine.step(change(final).encode(), NOW), Refused)
    assert isinstance(machine.step(final.encode(), NOW), Refused), "the right one comes too late"


def test_an_authorization_id_that_is_the_user_is_bound_into_the_login() -> None:
    def bound(header: bytes) -> Verdict:
        machine = Scram(SHA_256, finding(known(SHA_256, "alice", "secret")), "server", DECOY)
        final = _proof(machine, "n,a=alice,").replace("c=biws", f"c={base64.b64encode(header).decode()}")
        return machine.step(final.encode(), NOW)

    # What the client signed was the other header, so even the right one does not fit: it is not an open door.
    assert isinstance(bound(b"n,,"), Refused)
    assert isinstance(bound(b"n,a=alice,"), Refused)


def test_a_delegation_token_is_a_login_of_its_own() -> None:
    entry = known(SHA_512, "owner", "the-hmac")
    machine = Scram(SHA_512, finding(entry, "token-id", tokens=True), "server", DECOY)
    assert talk(machine, client.scram("sha512", "token-id", "the-hmac", "client")) == invalid(SHA_512)
    for expires, ends in ((NOW + 1, Accepted), (NOW, Refused)):
        token = entry._replace(expires_ms=expires)
        machine = Scram(SHA_512, finding(token, "token-id", tokens=True), "server", DECOY)
        verdict = talk(machine, client.scram("sha512", "token-id", "the-hmac", "client", {"tokenauth": "true"}))
        assert isinstance(verdict, ends)
        if isinstance(verdict, Accepted):
            assert (verdict.user, verdict.expires_ms, verdict.by_token) == ("owner", NOW + 1, True)


def invalid(mechanism: ScramMechanism) -> Refused:
    return Refused(
        f"Authentication failed during authentication due to invalid credentials with SASL mechanism {mechanism.name}",
        "wrong password, or no such user or token",
    )


def test_a_credential_is_written_as_kafka_writes_it() -> None:
    credential = known(SHA_256, "alice", "secret").credential
    text = write_credential(credential)
    assert text.startswith("salt=MDEyMzQ1Njc4OQ==,stored_key=")
    assert text.endswith(",iterations=4096")
    assert read_credential(text) == credential
    for wrong in ("", "salt=x", text.replace("iterations=", "i="), text.replace("4096", "many")):
        with pytest.raises(ValueError, match=r"without|invalid|base64|padded|padding|unpack"):
            read_credential(wrong)
    assert repr(credential) == "ScramCredential(iterations=4096)"


def test_the_client_sees_through_a_server_that_does_not_know_the_password() -> None:
    impostor = Scram(SHA_256, finding(known(SHA_256, "alice", "secret")), "server", DECOY)
    exchange = client.scram("sha256", "alice", "secret", "client")
    challenge = impostor.step(next(exchange), NOW)
    assert isinstance(challenge, Challenge)
    exchange.send(challenge.reply)
    with pytest.raises(AuthenticationFailed):
        exchange.send(b"v=" + base64.b64encode(b"x" * 32))


# -- OAUTHBEARER


def verify(token: str, now_ms: int) -> Holder | BadToken:
    return Holder("alice", now_ms + 60_000) if token == "good.good.good" else BadToken("it is not good")


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good.good.good\x01\x01",
        b"n,a=alice,\x01auth=bEARER good.good.good\x01\x01",
        b"n,,\x01traceId=17\x01auth=Bearer good.good.good\x01logicalCluster=a b\x01\x01",
    ],
)
def test_a_good_token_lets_in(message: bytes) -> None:
    machine = OAuthBearer(verify)
    assert machine.step(message, NOW) == Accepted(b"", "alice", NOW + 60_000)
    assert isinstance(machine.step(message, NOW), Refused)


def test_a_bad_token_is_explained_first_and_refused_then() -> None:
    machine = OAuthBearer(verify)
    assert machine.step(b"n,,\x01auth=Bearer bad\x01\x01", NOW) == Challenge(b'{"status":"invalid_token"}')
    refused = Refused('{"status":"invalid_token"}', "it is not good")
    assert machine.step(b"\x01", NOW) == refused
    again = OAuthBearer(verify)
    again.step(b"n,,\x01auth=Bearer bad\x01\x01", NOW)
    assert again.step(b"n,,\x01auth=Bearer good.good.good\x01\x01", NOW) == refused, "no second try in one login"


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\x01", b"n,,", b"n,,\x01\x01", b"n,,\x01auth=Bearer good.good.good\x01", b"y,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Basic good.good.good\x01\x01", b"n,,\x01auth=Bearer \x01\x01", b"n,,\x01a=b\x01\x01",
        b"n,,\x01auth=Bearer good.good.good\x01auth=Bearer good.good.good\x01\x01",
        b"n,a=bob,\x01auth=Bearer good.good.good\x01\x01", b"n,,\x01auth=Bearer good.good.good\x01\x01\xff",
        b"n,,\x019=x\x01auth=Bearer good.good.good\x01\x01",
    ],
)  # fmt: skip
def test_oauthbearer_refuses_what_is_malformed(message: bytes) -> None:
    machine = OAuthBearer(verify)
    assert isinstance(machine.step(message, NOW), Refused)
    assert isinstance(machine.step(b"n,,\x01auth=Bearer good.good.good\x01\x01", NOW), Refused)


@pytest.mark.parametrize("token", [b"\0secret\0alice", b"x\0alice secret\0y", b"secret\0alice\0x", b"\0alice\0secret2"])
def test_plain_tells_the_log_no_name_that_may_be_a_password(token: bytes) -> None:
    verdict = Plain({"alice": "secret"}, DECOY).step(token, NOW)
    assert isinstance(verdict, Refused)
    assert "secret" not in verdict.why + verdict.text
    assert ("alice" in verdict.why) == (b"\0alice\0" in token), "of who exists it tells the name"


# -- hostile input


def _machines() -> list[tuple[Mechanism, bytes]]:
    entry = finding(known(SHA_256, "alice", "secret"))
    begun = Scram(SHA_256, entry, "server", DECOY)
    final = _proof(begun).encode()
    return [
        (Plain({"alice": "secret"}, DECOY), b"\0alice\0secret"),
        (Scram(SHA_256, entry, "server", DECOY), b"n,,n=alice,r=client"),
        (begun, final),
        (OAuthBearer(verify), b"n,,\x01auth=Bearer good.good.good\x01\x01"),
    ]


def mutated(token: bytes, chance: random.Random) -> bytes:
    data = bytearray(token)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[place:place] = chance.randbytes(chance.randint(1, 8))
            case 1:
                del data[place : place + chance.randint(1, 8)]
            case 2 if place < len(data):
                data[place] ^= 1 << chance.randrange(8)
            case 3:
                data[place:place] = data[: chance.randrange(len(data) + 1)]
            case _:
                data[place:place] = chance.choice(
                    [b",", b"=", b"\0", b"\x01", b"r=", b"a=alice", b"p=", b"n,,", b"=2C"]
                )
    return bytes(data)


def test_mutated_tokens_never_crash_a_machine_and_never_open_the_door(pytestconfig: pytest.Config) -> None:
    chance = random.Random(14)
    credential = known(SHA_256, "alice", "secret")
    begun_from = _proof(Scram(SHA_256, finding(credential), "server", DECOY)).encode()
    count: int = pytestconfig.getoption("--hostile-inputs", default=4_000)
    rights = [token for _, token in _machines()]
    let_in = 0
    for number in range(count):
        kind = number % 4
        machine: Mechanism
        if kind == 0:
            machine = Plain({"alice": "secret"}, DECOY)
        elif kind == 3:
            machine = OAuthBearer(verify)
        else:
            machine = Scram(SHA_256, finding(credential), "server", DECOY)
            if kind == 2:
                machine.step(b"n,,n=alice,r=client", NOW)
        token = mutated(rights[kind], chance)
        if token == rights[kind]:
            continue
        verdict = machine.step(token, NOW)
        if isinstance(verdict, Accepted):
            let_in += 1
            assert verdict.user == "alice"
            # What was changed says the same: an authorization id, or an extension that nobody asks about.
            assert kind in (0, 3), token
            assert b"secret" in token or b"good.good.good" in token
        else:
            assert not isinstance(machine.step(begun_from, NOW), Accepted)
    assert let_in < count / 10
