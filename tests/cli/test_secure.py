"""`--secure`: one command, and nobody gets in but who was told how."""

import contextlib
import os
import re
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.cli.main import main
from ottla.registry.client import RegistryClient
from ottla.registry.errors import RegistryError
from ottla.registry.framing import id_prefix
from ottla.testing.load import quiet
from ottla.testing.ports import free_ports
from ottla.testing.waiting import wait_until

PROGRAM = "import sys; from ottla.cli.main import main; sys.exit(main())"
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=log, bufsize=0
        )
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], START_SECONDS_MAX)
        assert readable, (folder / "log").read_text()
        yield process
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
        assert process.wait(STOP_SECONDS_MAX) == 0, (folder / "log").read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def settings_of(folder: Path, bootstrap: str) -> dict[str, str]:
    """What kcat would read."""
    lines = (folder / "kcat.conf").read_text().splitlines()
    return {"bootstrap.servers": bootstrap, **dict(line.partition("=")[::2] for line in lines)}


def only_for_their_owner(folder: Path) -> None:
    for name in ("broker.pem", "client.properties", "kcat.conf", "admin.password"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    assert sum("PRIVATE KEY" in path.read_text() for path in folder.iterdir()) == 1, "the authority's is nowhere"


def no_secrets_in_process_lists(folder: Path, pids: list[int]) -> None:
    password = (folder / "admin.password").read_text().strip()
    for pid in pids:
        assert password not in Path(f"/proc/{pid}/cmdline").read_text()


def strangers_stay_out(bootstrap: str, folder: Path) -> None:
    wrong = {**settings_of(folder, bootstrap), "sasl.password": "guessed"}
    for settings in ({"bootstrap.servers": bootstrap}, wrong):
        with pytest.raises(KafkaException):
            AdminClient(settings, logger=quiet).list_topics(timeout=2)


def registry_client(folder: Path, url: str, **login: str) -> RegistryClient:
    password = (folder / "admin.password").read_text().strip()
    given = {"user": "admin", "password": password, **login}
    return RegistryClient(url, user=given["user"], password=given["password"], ca_file=str(folder / "ca.pem"))


def registry_answers(folder: Path, url: str) -> bool:
    with registry_client(folder, url) as client, contextlib.suppress(RegistryError):
        return isinstance(client.get("/subjects"), list)
    return False


def registry_asks_who_is_there(folder: Path, url: str) -> None:
    """It comes up after the broker, and lets in whom the broker lets in."""
    wait_until(lambda: registry_answers(folder, url), "the registry answers", seconds=60, pause=0.2)
    for login in ({"password": "guessed"}, {"user": "eve"}):
        with registry_client(folder, url, **login) as client, pytest.raises(RegistryError) as refused:
            client.get("/subjects")
        assert refused.value.status == 401


def topics_check_schemas(folder: Path, bootstrap: str, url: str) -> None:
    """The brokers ask the registry, with a login of their own."""
    with registry_client(folder, url) as client:
        known = client.register("checked-value", '"string"').schema_id
    admin = AdminClient(settings_of(folder, bootstrap), logger=quiet)
    config = {"confluent.value.schema.validation": "true"}
    admin.create_topics([NewTopic("checked", 1, config=config)])["checked"].result(30)
    for value, taken in (
        (id_prefix(known) + b"\x02a", True),
        (b"without", False),
        (id_prefix(known + 1) + b"a", False),
    ):
        errors: list[Any] = []
        producer = Producer(settings_of(folder, bootstrap), logger=quiet)
        producer.produce("checked", value, on_delivery=lambda error, _, told=errors: told.append(error))
        assert producer.flush(60) == 0
        assert [error is None for error in errors] == [taken], (value, errors)
        assert taken or errors[0].code() == KafkaError.INVALID_RECORD


def test_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, registry_port = free_ports(2)
    bootstrap, folder = f"127.0.0.1:{port}", tmp_path / "data" / "security"
    up = ["up", "--secure", "--port", str(port), "--data", str(tmp_path / "data")]
    up += ["--registry", f"127.0.0.1:{registry_port}"]
    with started(tmp_path, *up) as process:
        assert process.stdout is not None
        assert process.stdout.readline().decode().startswith(f"Ottla is up on {bootstrap}.")
        only_for_their_owner(folder)
        no_secrets_in_process_lists(folder, [process.pid])
        to = ["--bootstrap-server", bootstrap, "--command-config", str(folder / "client.properties")]
        assert main(["topics", *to, "--create", "--topic", "news"]) == 0
        assert main(["topics", *to, "--list"]) == 0
        assert "news\n" in capsys.readouterr().out
        strangers_stay_out(bootstrap, folder)
        registry_asks_who_is_there(folder, f"https://127.0.0.1:{registry_port}")
        topics_check_schemas(folder, bootstrap, f"https://127.0.0.1:{registry_port}")
    password = (folder / "admin.password").read_text()
    with started(tmp_path, *up) as process:
        assert (folder / "admin.password").read_text() == password, "made once"
        producer = Producer(settings_of(folder, bootstrap), logger=quiet)
        producer.produce("news", b"hello")
        assert producer.flush(30) == 0
        said = os.read(process.stdout.fileno(), 65_536).decode() if process.stdout else ""
    assert password.strip() not in said
    assert str(folder / "admin.password") in said
    assert (tmp_path / "log").read_text() == "", "nothing to warn about"


def test_the_page_from_nothing_to_a_secured_broker(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    first, *lines = page.split("```bash\n")[1].split("```")[0].splitlines()
    assert first.startswith("ottla up --secure &")
    (port,) = free_ports(1)
    commands = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with started(tmp_path, "up", "--secure", "--port", str(port), "--data", str(tmp_path / ".ottla")):
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", "\n".join(lines)],
            cwd=tmp_path, env={**commands, "OTTLA_BOOTSTRAP": f"127.0.0.1:{port}"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "hello", done.stdout


def test_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port, folder = free_ports(1)[0], tmp_path / "data" / "security"
    registry_port = free_ports(1)[0]
    cluster = ["cluster", "--secure", "--brokers", "2", "--port", str(port), "--data", str(tmp_path / "data")]
    with started(tmp_path, *cluster, "--registry", f"127.0.0.1:{registry_port}") as process:
        assert process.stdout is not None
        bootstrap = process.stdout.readline().decode().strip()
        assert bootstrap == f"127.0.0.1:{port},127.0.0.1:{port + 1}", (tmp_path / "log").read_text()
        only_for_their_owner(folder)
        children = [int(pid) for pid in re.findall(r"\| process (\d+)", (tmp_path / "log").read_text())]
        no_secrets_in_process_lists(folder, [process.pid, *children])
        admin = AdminClient(settings_of(folder, bootstrap), logger=quiet)
        assert sorted(admin.list_topics(timeout=20).brokers) == [1, 2]
        admin.create_topics([NewTopic("news", 2, replication_factor=2)])["news"].result(30)
        producer = Producer({**settings_of(folder, bootstrap), "acks": "all"}, logger=quiet)
        for number in range(100):
            producer.produce("news", str(number).encode())
        assert producer.flush(30) == 0, "a follower has them: brokers talk over their own listener"
        strangers_stay_out(bootstrap, folder)
        to = ["--bootstrap-server", bootstrap, "--command-config", str(folder / "client.properties")]
        assert main(["topics", *to, "--describe", "--under-replicated-partitions"]) == 0
        assert "news" not in capsys.readouterr().out
        registry_asks_who_is_there(folder, f"https://127.0.0.1:{registry_port}")
        topics_check_schemas(folder, bootstrap, f"https://127.0.0.1:{registry_port}")
        children = [int(pid) for pid in re.findall(r"\| process (\d+)", (tmp_path / "log").read_text())]
        no_secrets_in_process_lists(folder, children)
    text = (tmp_path / "log").read_text()
    assert (folder / "admin.password").read_text().strip() not in text
    assert f"--command-config {folder / 'client.properties'}" in text
