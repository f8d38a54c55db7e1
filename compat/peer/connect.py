"""Workers of Kafka Connect, and what is asked of them over REST."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat.peer.ecosystem import ecosystem_command, write_properties
from compat.peer.program import Program

from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

REQUEST_SECONDS_MAX = 100.0  # a worker itself gives up after 90
STEP_SECONDS_MAX = 240.0


class RestError(Exception):
    """A worker answered with an error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Worker(Program):
    """A worker of a distributed Connect cluster, which can be killed and started again at its address."""

    def __init__(self, number: int, directory: Path, settings: Mapping[str, str | int]) -> None:
        (port,) = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        """Its worker id, too."""
        properties = {**settings, "listeners": f"http://{self.address}"}
        path = write_properties(directory / f"worker-{number}.properties", properties)
        command = ecosystem_command("org.apache.kafka.connect.cli.ConnectDistributed", str(path))
        super().__init__(f"worker {number}", command)

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The worker's answer; RestError when it refuses."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS_MAX) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise RestError(error.code, error.read().decode(errors="replace")) from None
        return json.loads(text) if text else None

    def asked_until_told(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """While workers come and go they answer 409 or 500, or nothing: ask again."""
        last: list[str] = []

        def told() -> tuple[Any] | None:
            assert self.running, f"{self.name} has ended; {self.text}"
            try:
                return (self.ask(method, path, body),)
            except (OSError, RestError) as error:
                if isinstance(error, RestError) and error.code not in {404, 409, 500, 503}:
                    raise
                last[:] = [str(error)]
            return None

        try:
            answer = wait_until(told, f"{self.name} answers {method} {path}", seconds=STEP_SECONDS_MAX)
        except AssertionError as error:
            raise AssertionError(f"{error}; {last}; {self.text}") from None
        assert answer is not None
        return answer[0]

    def task_worker(self, connector: str) -> str | None:
        """The id of the worker that runs the one task of a connector, when both run."""
        status = self.asked_until_told("GET", f"/connectors/{connector}/status")
        states = [status["connector"], *status["tasks"]]
        for state in states:
            assert state["state"] != "FAILED", state.get("trace")
        if len(states) < 2 or any(state["state"] != "RUNNING" for state in states):
            return None
        worker: str = status["tasks"][0]["worker_id"]
        return worker

    def wait_for_task(self, connector: str, *, elsewhere_than: str = "") -> str:
        """The worker that runs the task, once it is another one than this."""

        def moved() -> str | None:
            worker = self.task_worker(connector)
            return worker if worker != elsewhere_than else None

        worker = wait_until(moved, f"{connector} runs", seconds=STEP_SECONDS_MAX)
        assert worker is not None
        return worker
