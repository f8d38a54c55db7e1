"""Names and passwords checked: against the file of users, and against the brokers. Wrong ones cost time.

Whether a name exists cannot be told from how long a refusal takes: unknown names cost a hash as known ones do, and no
refusal comes before a second has passed.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

from ottla.console.access.broker_login import BrokerAway, try_login
from ottla.console.access.delays import Delays
from ottla.console.access.roles import Role
from ottla.console.access.users import AccessFile
from ottla.model.errors import OttlaError

NAME_CHARACTERS_MAX = 200
PASSWORD_CHARACTERS_MAX = 1_024
AT_ONCE_MAX = 4
"""Hashes that are computed at the same time: each takes 16 MB."""
WRONG = "name or password is wrong"


class SignInRefused(OttlaError):
    def __init__(self, status: HTTPStatus, words: str, headers: Mapping[str, str] | None = None) -> None:
        self.status, self.words, self.headers = status, words, dict(headers or {})
        super().__init__(words)


class Accepted(NamedTuple):
    role: Role
    way: str
    cluster: str | None = None
    login: Mapping[str, str] | None = None


class Credentials:
    def __init__(
        self,
        file: AccessFile,
        clusters: Mapping[str, Mapping[str, str]],
        broker_role: Role,
        *,
        now: Callable[[], float] = time.monotonic,
        failure_seconds: float = 1.0,
    ) -> None:
        self._file, self._clusters, self._broker_role = file, clusters, broker_role
        self._now = now
        self._failure_seconds = failure_seconds
        self._delays = Delays()
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)

    async def check(self, name: str, password: str, cluster: str, address: str) -> Accepted:
        """`cluster` is the one whose brokers are asked, if it is one whose users may sign in. SignInRefused."""
        wait = self._delays.wait_seconds(name, address, self._now())
        if wait > 0:
            seconds = str(int(wait) + 1)
            raise SignInRefused(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many attempts that failed: try again in {seconds} s",
                {"Retry-After": seconds},
            )
        began = asyncio.get_running_loop().time()
        # Counted before the answer is known: many guesses at once are as many failures.
        self._delays.failed(name, address, self._now())
        try:
            found = await self._accepted(name, password, cluster)
        except BrokerAway as error:
            raise SignInRefused(HTTPStatus.SERVICE_UNAVAILABLE, f"the brokers cannot be asked: {error}") from None
        if found is None:
            await asyncio.sleep(max(0.0, began + self._failure_seconds - asyncio.get_running_loop().time()))
            raise SignInRefused(HTTPStatus.UNAUTHORIZED, WRONG)
        self._delays.succeeded(name, address)
        return found

    async def _accepted(self, name: str, password: str, cluster: str) -> Accepted | None:
        if not name or len(name) > NAME_CHARACTERS_MAX or not name.isprintable():
            return None
        if not password or len(password) > PASSWORD_CHARACTERS_MAX:
            return None
        if self._file.users:
            async with self._turns:
                role = await asyncio.to_thread(self._file.check, name, password)
            if role is not None:
                return Accepted(role, "file")
        base = self._clusters.get(cluster)
        if base is None or name in self._file.users:
            return None
        login = await try_login(base, name, password)
        return None if login is None else Accepted(self._broker_role, "sasl", cluster, login)
