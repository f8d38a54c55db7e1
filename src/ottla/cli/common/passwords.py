"""Where a password comes from: never from the command line, which everybody on the machine can read."""

import getpass
import os
import secrets
import sys
from pathlib import Path

from ottla.cli.common.output import CommandError, warn

GENERATED_BYTES = 24
SOURCES = "prompt, stdin, file:PATH, env:NAME, or generate:PATH (a new one, written to a file that only you can read)"


def password_from(source: str | None, whose: str) -> str:
    """The password that a `--password-from` names; without one it is asked for, or read from a pipe."""
    if source is None:
        source = "prompt" if sys.stdin.isatty() else "stdin"
    kind, _, place = source.partition(":")
    match kind:
        case "prompt":
            found = _asked(whose)
        case "stdin" | "-":
            found = sys.stdin.readline().rstrip("\r\n")
        case "file" if place:
            found = _read(place)
        case "env" if place:
            if place not in os.environ:
                raise CommandError(f"--password-from {source}: there is no environment variable {place}")
            found = os.environ[place]
        case "generate" if place:
            found = _generated(place)
        case _:
            raise CommandError(f"--password-from wants {SOURCES}")
    if not found:
        raise CommandError(f"the password of {whose} is empty")
    return found


LOGIN_SOURCES = "file:PATH or env:NAME, where NAME:PASSWORD stands; or NAME:PASSWORD itself, which everybody can see"
REFERENCES = ("file:", "env:")


def login_from(text: str, option: str) -> tuple[str | None, str]:
    """Name and password as `option` gives them: a reference to where they stand, or both in clear. None: nobody."""
    if not text:
        return None, ""
    kind, _, place = text.partition(":")
    found = text
    if kind == "file":
        found = _login_in(place, option)
    elif kind == "env":
        if place not in os.environ:
            raise CommandError(f"{option} env:{place}: there is no environment variable {place}")
        found = os.environ[place]
    name, colon, password = found.partition(":")
    if not name or not colon:
        where = text if found is not text else "what it was given"
        raise CommandError(f"{option}: {where} is not NAME:PASSWORD; it wants {LOGIN_SOURCES}")
    return name, password


def warn_of_clear_login(text: str, option: str) -> None:
    """For a login that stood on a command line."""
    if text and not text.startswith(REFERENCES):
        warn(
            f"{option}: a password stands on the command line, where everybody on this machine can read it; give "
            f"file:PATH or env:NAME instead"
        )


def _login_in(place: str, option: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise CommandError(f"{option}: cannot read {place}: {error.strerror}") from error


def _asked(whose: str) -> str:
    first = getpass.getpass(f"Password of {whose}: ")
    if first != getpass.getpass("The same again: "):
        raise CommandError("the two passwords differ; nothing was changed")
    return first


def _read(place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise CommandError(f"cannot read {place}: {error.strerror}") from error


def _generated(place: str) -> str:
    made = secrets.token_urlsafe(GENERATED_BYTES)
    try:
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise CommandError(f"cannot write {place}: {error.strerror}") from error
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(made + "\n")
    return made
