"""server.properties as Kafka ships them and as operators tune them: a broker starts from each as it stands."""

import contextlib
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.cli.main import main
from ottla.config.listeners import exposure_problems
from ottla.config.load import load_settings
from ottla.testing.ports import free_ports
from ottla.testing.zookeeper import shared_zookeeper

FILES = sorted(Path(__file__).with_name("kafka_files").glob("*.properties"))
START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 60.0


@contextlib.contextmanager
def started(file: Path, *overrides: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The broker of a file with what a machine for tests cannot have put in another place."""
    script = Path(sys.executable).with_name("kafka-server-start.sh")
    words = [word for override in overrides for word in ("--override", override)]
    process = subprocess.Popen([script, file, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_untouched_it_lacks_one_word_at_most(file: Path) -> None:
    """That a port which asks nobody who they are may be open to other machines: the only thing there is to say."""
    settings = load_settings(str(file))
    said = exposure_problems(settings)
    assert all("PLAINTEXT asks nobody who they are" in problem for problem in said)
    assert bool(said) == ("listeners=" in file.read_text()), "without listeners it is 127.0.0.1 alone"
    meant = load_settings(str(file), ["ottla.allow.unauthenticated.listeners=true"])
    assert exposure_problems(meant) == []


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_a_broker_starts_from_it(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = dict(
        line.partition("=")[::2] for line in file.read_text().splitlines() if line and not line.startswith("#")
    )
    (port,) = free_ports(1)
    overrides = [
        f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}" if "," in given["log.dirs"] else f"log.dirs={tmp_path}",
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
    ]
    if "zookeeper.connect" in given:
        overrides.append(f"zookeeper.connect={shared_zookeeper().connect}/{file.stem}")
    with started(file, *overrides) as process:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], START_SECONDS_MAX)
        line = process.stdout.readline().decode() if readable else ""
        assert "accepts connections" in line, process.stderr.read().decode() if process.stderr else ""
        assert main(["broker-api-versions", "--bootstrap-server", f"127.0.0.1:{port}"]) == 0
        assert f"(id: {given.get('node.id') or given['broker.id']} rack: " in capsys.readouterr().out
        process.send_signal(signal.SIGTERM)
        _, logged = process.communicate(timeout=STOP_SECONDS_MAX)
    assert process.returncode == 0
    threads = [line for line in logged.decode().splitlines() if "num.network.threads" in line]
    assert len(threads) == 1, "one line says what has no effect"
    assert "no effect here, a broker has one event loop" in threads[0]
    assert ("WARNING" in threads[0]) == file.stem.startswith("tuned"), "Kafka's defaults are nothing to warn about"
    assert "not-a-real-secret" not in logged.decode()
