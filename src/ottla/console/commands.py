"""The command line that does the same as a page: for scripts, for colleagues, for those who want to see it."""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.console.asking import Ask


def command(ask: "Ask", tool: str, *arguments: str) -> str:
    settings = ask.watched.settings
    needs_more = len(settings.client) > 1  # than where the brokers are: a login, a trust store
    return line(
        tool, settings.bootstrap, *(["--command-config", "client.properties"] if needs_more else []), *arguments
    )


def line(tool: str, bootstrap: str, *arguments: str) -> str:
    words = [f"{tool}.sh" if tool.startswith(("kafka-", "connect-")) else tool]
    if bootstrap:
        words += ["--bootstrap-server", bootstrap]
    return " ".join([*words[:-1], *(shlex.quote(word) for word in [words[-1], *arguments])])
