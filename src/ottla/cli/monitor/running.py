"""Runs the monitor until it is told to stop, or for a while (`--once`)."""

import asyncio
import contextlib
import logging
import signal
import ssl
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

from ottla.cli.common.admin_session import no_broker
from ottla.cli.common.output import CommandError, complain, note, print_json
from ottla.cli.monitor.display import choose_display, once_lines
from ottla.client.errors import AuthenticationFailed, ClientError, InvalidSetting, NotTrusted, Unreachable
from ottla.http.server import HttpServer
from ottla.model.errors import ApiError, OttlaError
from ottla.monitoring.burrow_config import HttpListener
from ottla.monitoring.endtoend.monitor import EndToEnd
from ottla.monitoring.endtoend.settings import EndToEndSettings
from ottla.monitoring.lag.notifiers import Notifier
from ottla.monitoring.lag.watching import Notices, Watch, WatchSettings
from ottla.monitoring.serving import Monitor, basic_login, server_context

SHOW_SECONDS = 1.0


async def run_monitor(
    watches: Sequence[WatchSettings],
    notifiers: Sequence[Notifier],
    ends: Sequence[EndToEndSettings],
    listeners: Iterable[HttpListener],
    *,
    users: Mapping[str, str] | None = None,
    json: bool,
) -> int:
    logging.basicConfig(level=logging.WARNING, format="[%(asctime)s] %(levelname)s %(message)s")
    notices = Notices(notifiers)
    monitor = Monitor([Watch(each, notices) for each in watches], notices, [EndToEnd(each) for each in ends])
    served = monitor.served()
    login = None if users is None else basic_login(users)
    servers = [HttpServer(served, each.address, tls=_tls(each), login=login) for each in listeners]
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    jobs: list[asyncio.Future[None]] = []
    try:
        for server in servers:
            await server.start()
            note(f"serving {server.url}/metrics and {server.url}/v3/kafka")
        jobs = [asyncio.ensure_future(watch.run()) for watch in monitor.watches]
        jobs += [asyncio.ensure_future(_run_end(end)) for end in monitor.ends]
        jobs.append(asyncio.ensure_future(_show(monitor, json=json)))
        jobs.append(asyncio.ensure_future(_until(stop)))
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for job in done:
            job.result()  # none of the others ends unless it failed
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        for server in servers:
            await server.stop()
        for watch in monitor.watches:
            await watch.close()
        for end in monitor.ends:
            await end.close()
    return 0


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


def _tls(listener: HttpListener) -> ssl.SSLContext | None:
    if listener.certificate is None:
        return None
    try:
        return server_context(listener.certificate, listener.key)
    except OSError as error:  # of TLS, too
        raise CommandError(f"{listener.certificate} cannot be served with: {error}") from None


async def _run_end(end: EndToEnd) -> None:
    """A cluster that is away when the monitor starts is waited for: it is then that a monitor is needed."""
    told = False
    while True:
        try:
            await end.start()
            break
        except OttlaError as error:
            if not _may_pass(error):
                raise
            if not told:
                complain(f"{end.settings.name}: {error}; trying again until it answers")
            told = True
            end.write.note(0, 1, time.time())
            await asyncio.sleep(SHOW_SECONDS)
    await end.run()


def _may_pass(error: OttlaError) -> bool:
    """Whether trying again can help: brokers that are away or starting, but not credentials that are refused."""
    if isinstance(error, ApiError):
        return error.code.retriable
    return not isinstance(error, NotTrusted | AuthenticationFailed | InvalidSetting)


async def _show(monitor: Monitor, *, json: bool) -> None:
    with choose_display(json=json) as display:
        while True:
            display.show(monitor)
            await asyncio.sleep(SHOW_SECONDS)


async def run_once(ends: Sequence[EndToEndSettings], seconds: float, *, json: bool) -> int:
    """Whether the objective is kept, as an exit code."""
    monitors = [EndToEnd(each) for each in ends]
    try:
        for each in monitors:
            try:
                await each.start()
            except Unreachable as error:
                raise CommandError(no_broker(each.settings.client.bootstrap, error)) from None
            if each.leaders.problem:
                raise CommandError(f"topic {each.settings.topic}: {each.leaders.problem}")
        await asyncio.gather(*(each.run_for(seconds) for each in monitors))
        verdicts = [(each.summary(), _faults(each)) for each in monitors]
    finally:
        for each in monitors:
            with contextlib.suppress(ClientError):
                await each.close()
    if json:
        print_json([{**summary, "kept": not faults, "faults": faults} for summary, faults in verdicts])
    else:
        for summary, faults in verdicts:
            print("\n".join(once_lines(summary, faults)))
    sys.stdout.flush()
    return 1 if any(faults for _, faults in verdicts) else 0


def _faults(each: EndToEnd) -> list[str]:
    """Why a gate is to stay closed."""
    faults = []
    for sli, level in (("write", each.write), ("read", each.read)):
        total = level.good + level.bad
        if not total:
            faults.append(f"{sli}: no record was tried")
        elif level.good / total < level.objective.ratio:
            ratio, wanted = 100 * level.good / total, 100 * level.objective.ratio
            faults.append(f"{sli} availability is {ratio:.3f} %, below {wanted:g} %")
    if each.counts["lost"]:
        faults.append(f"{each.counts['lost']} acknowledged records are lost")
    if each.commits.last_error:
        faults.append(f"offsets cannot be committed: {each.commits.last_error}")
    if each.topics.last_error:
        faults.append(f"topics cannot be created and deleted: {each.topics.last_error}")
    return faults
