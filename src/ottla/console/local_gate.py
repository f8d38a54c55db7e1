"""Until somebody signs in: whoever reaches the listener comes in. (Placeholder of access.gate.)"""

import secrets
from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ottla.console.asking import Caller, Right


class LocalCaller:
    name = "local"
    right = Right.ADMIN
    login: Mapping[str, str] | None = None

    def __init__(self) -> None:
        self.csrf = secrets.token_urlsafe(16)


class LocalGate:
    def __init__(self) -> None:
        self._caller = LocalCaller()

    async def admit(self, request: Request, needed: Right, changes: bool) -> Caller:
        return self._caller

    def routes(self) -> Sequence[BaseRoute]:
        return ()

    def note(self, caller: Caller, request: Request, entry_summary: str, words: str, ok: bool) -> None: ...

    def finish(self, request: Request, response: Response) -> Response:
        return response
