"""Passwords: of a file by their digests, of the brokers a few at a time."""

import asyncio
import base64
from pathlib import Path

import pytest
from starlette.requests import Request

from ottla.registry.rest import login
from ottla.testing.registry import write_users


def request(name: str, password: str) -> Request:
    shown = base64.b64encode(f"{name}:{password}".encode())
    return Request({"type": "http", "headers": [(b"authorization", b"Basic " + shown)], "client": ("127.0.0.1", 1)})


def test_a_file_keeps_no_password_and_knows_each(tmp_path: Path) -> None:
    known = login.login_by_file(str(write_users(tmp_path / "users", [("joe", "secret"), ("jo", "esecret")])))

    async def who(name: str, password: str) -> str | None:
        return await known.authenticate(request(name, password))

    assert asyncio.run(who("joe", "secret")) == "joe"
    assert asyncio.run(who("jo", "esecret")) == "jo"
    for name, password in (("joe", "secre"), ("joe", ""), ("eve", "secret"), ("eve", ""), ("joe", "sécret")):
        assert asyncio.run(who(name, password)) is None
    held = [cell.cell_contents for cell in known.authenticate.__closure__ or ()]
    assert held
    assert "secret" not in repr(held)


def test_few_passwords_are_tried_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = most = asked = 0

    async def takes(_settings: object, _mechanism: str, name: str, _password: str) -> bool:
        nonlocal at_once, most, asked
        asked += 1
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0)
        at_once -= 1
        return name == "joe"

    monkeypatch.setattr(login, "_broker_takes", takes)

    async def storm() -> list[str | None]:
        tried = login.login_by_scram({}, "SCRAM-SHA-512")
        guesses = [tried.authenticate(request("eve", f"guess{number}")) for number in range(50)]
        rights = [tried.authenticate(request("joe", "secret")) for _ in range(50)]
        return await asyncio.gather(*guesses, *rights)

    assert asyncio.run(storm()) == [None] * 50 + ["joe"] * 50
    assert most == login.AT_ONCE_MAX
    assert asked <= 50 + login.AT_ONCE_MAX, "who was let in is not asked about again"
