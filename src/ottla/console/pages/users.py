"""Users who log in with SCRAM: who there are, new passwords, removal. Passwords are never shown, logged or kept."""

import asyncio
import hashlib
import secrets
import string
from typing import Any

from ottla.client.scram_users import alter_scram_users, describe_scram_users
from ottla.console import paging
from ottla.console.asking import Ask, BadInput, Done
from ottla.console.commands import command
from ottla.model.errors import ApiError
from ottla.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion

MECHANISMS = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS = 4096
SALT_CHARACTERS = 26
PASSWORD_CHARACTERS_MIN = 8


async def show(ask: Ask) -> dict[str, Any]:
    names = {number: name for name, (number, _) in MECHANISMS.items()}
    why = ""
    users: dict[str, dict[int, int]] = {}
    try:
        users = await describe_scram_users(ask.watched.cluster)
    except ApiError as error:
        why = error.message or error.code.name
    rows: list[dict[str, Any]] = [
        {
            "user": user,
            "mechanisms": [
                f"{names.get(number, number)} ({iterations} iterations)" for number, iterations in sorted(known.items())
            ],
        }
        for user, known in sorted(users.items())
    ]
    page = paging.cut(rows, ask.fields.mapping(), text=_user, keys={"user": _user}, sort="user")
    return {
        "items": page.items,
        **page.facts(),
        "why": why,
        "_page": page,
        "_mechanisms": list(MECHANISMS),
        "_command": command(ask, "kafka-configs", "--describe", "--entity-type", "users"),
        "_set": _alter(ask, "--add-config", "SCRAM-SHA-512=[password=PASSWORD]"),
        "_remove": _alter(ask, "--delete-config", "SCRAM-SHA-512"),
    }


def _alter(ask: Ask, *change: str) -> str:
    return command(ask, "kafka-configs", "--alter", "--entity-type", "users", "--entity-name", "NAME", *change)


def _user(row: dict[str, Any]) -> str:
    return str(row["user"])


async def set_password(ask: Ask) -> Done:
    user = ask.fields.need("user", "the user's name")
    password = ask.fields.get("password")
    if len(password) < PASSWORD_CHARACTERS_MIN:
        raise BadInput(f"a password has {PASSWORD_CHARACTERS_MIN} characters or more")
    if not password.isascii():
        raise BadInput("a password is of ASCII characters here: clients prepare others in different ways")
    wanted = ask.fields.all("mechanism") or ["SCRAM-SHA-512"]
    unknown = [each for each in wanted if each not in MECHANISMS]
    if unknown:
        raise BadInput(f"a mechanism is one of {', '.join(MECHANISMS)}, not `{unknown[0]}`")
    made = [await asyncio.to_thread(_credential, user, each, password) for each in dict.fromkeys(wanted)]
    await alter_scram_users(ask.watched.cluster, upsertions=made)
    return Done(f"user {user} can log in with {' and '.join(wanted)}", ask.link("/users"), {"user": user}, user)


def _credential(user: str, mechanism: str, password: str) -> ScramCredentialUpsertion:
    number, digest = MECHANISMS[mechanism]
    alphabet = string.digits + string.ascii_lowercase
    salt = "".join(secrets.choice(alphabet) for _ in range(SALT_CHARACTERS)).encode()
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, ITERATIONS)
    return ScramCredentialUpsertion(
        name=user, mechanism=number, iterations=ITERATIONS, salt=salt, salted_password=salted
    )


async def remove(ask: Ask) -> Done:
    user = ask.fields.need("user", "the user's name")
    ask.fields.confirmed(user, "remove the user")
    known = (await describe_scram_users(ask.watched.cluster, [user])).get(user)
    if not known:
        raise BadInput(f"there is no user {user}")
    deletions = [ScramCredentialDeletion(name=user, mechanism=number) for number in known]
    await alter_scram_users(ask.watched.cluster, deletions=deletions)
    return Done(f"user {user} cannot log in any more", ask.link("/users"), {"user": user}, user)
