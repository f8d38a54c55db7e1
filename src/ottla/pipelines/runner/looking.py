"""Pipelines seen from another process: is it running, what does it say, ask it to stop."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ottla.pipelines.errors import PipelineError
from ottla.pipelines.runner.state_folder import StateFolder

ANSWER_SECONDS_MAX = 5.0
LOOK_SECONDS = 0.1


class NotRunning(PipelineError):
    """Nobody runs this pipeline here."""


def look_at(state_dir: Path, name: str) -> dict[str, Any]:
    """What is known about a pipeline, from its driver if it runs and else from what that left behind."""
    live = StateFolder(state_dir, name)
    return {
        **_look(live, name),
        "active_version": live.active_version,
        "versions": {version: _look(StateFolder(state_dir, name, version), name) for version in live.versions()},
    }


def _look(folder: StateFolder, name: str) -> dict[str, Any]:
    run = folder.read("run.json")
    if run is not None and folder.locked_by_another:
        try:
            status = _ask(f"{run['http']}/status")
        except OSError:
            pass  # it is just starting or ending
        else:
            found = [each for each in status["pipelines"] if each["pipeline"] == name]
            if found:
                return {"running": True, **run, **found[0]}
    last = folder.read("status.json")
    if last is None:
        return {"running": False, "pipeline": name, "state": "never run", "version": None, "queries": []}
    # A driver that was killed left a state that was true then.
    state = last["state"] if last["state"] in ("done", "failed", "stopped") else "killed"
    return {**last, "running": False, "state": state}


def stop(state_dir: Path, name: str, seconds: float) -> None:
    """Ask its driver to end it after the batch that runs, and wait until it has."""
    folder = StateFolder(state_dir, name)
    run = folder.read("run.json")
    if run is None or not folder.locked_by_another:
        raise NotRunning(f"pipeline {name} does not run with the state folder {state_dir}")
    request = urllib.request.Request(  # noqa: S310 - the address is loopback, from our own file
        f"{run['http']}/stop?pipeline={quote(name)}", method="POST", headers={"X-Ottla": "stop"}
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX):  # noqa: S310
            pass
    except urllib.error.URLError as error:
        raise PipelineError(f"the driver of {name} (process {run['pid']}) does not answer: {error}") from error
    deadline = time.monotonic() + seconds
    while _runs(folder, name):
        if time.monotonic() > deadline:
            raise PipelineError(
                f"{name} has not ended within {seconds:g} s; its batch may be long: wait, or kill {run['pid']}"
            )
        time.sleep(LOOK_SECONDS)


def _runs(folder: StateFolder, name: str) -> bool:
    state = _look(folder, name)
    return bool(state["running"]) and state["state"] not in ("stopped", "done", "failed")


def _ask(address: str) -> dict[str, Any]:
    with urllib.request.urlopen(address, timeout=ANSWER_SECONDS_MAX) as answer:  # noqa: S310
        document: dict[str, Any] = json.load(answer)
    return document
