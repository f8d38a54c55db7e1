"""The relays between brokers: they carry, they can be cut and healed, and they know who speaks to whom."""

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ottla.testing.links import Links
from ottla.testing.waiting import wait_until

# Speaks as broker 1 by what its command line says, echoes a line of its own choice to broker 2.
CALLER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for line in sys.stdin:
    connection.sendall(line.encode())
    sys.stdout.write(connection.recv(100).decode())
    sys.stdout.flush()
"""


@contextlib.contextmanager
def calling(links: Links, port: int, number: int) -> Iterator["subprocess.Popen[str]"]:
    settings = [f"--set={name}={value}" for name, value in links.settings(number).items()]
    process = subprocess.Popen(
        [sys.executable, "-c", CALLER, str(port), f"--set=node.id={number}", *settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def say(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def port_of(address: object) -> int:
    return int(str(address).rpartition(":")[2])


def test_a_cut_link_holds_back_and_a_healed_one_carries_on() -> None:
    links = Links([1, 2, 3])
    with contextlib.closing(links), socket.socket() as server:
        settings = links.settings(2)
        server.bind(("127.0.0.1", port_of(settings["listeners"])))
        server.listen()
        server.settimeout(10)
        with calling(links, port_of(settings["advertised.listeners"]), 1) as caller:
            say(caller, "one")
            connection, _ = server.accept()
            with connection:
                connection.settimeout(60)
                assert connection.recv(100) == b"one\n"
                connection.sendall(b"answer\n")
                assert caller.stdout is not None
                assert caller.stdout.readline() == "answer\n"

                links.cut((2, 3))
                say(caller, "two")
                assert connection.recv(100) == b"two\n", "only the link between 2 and 3 is cut"
                connection.sendall(b"answer\n")
                caller.stdout.readline()

                links.cut_off(2)
                say(caller, "three")
                connection.settimeout(0.3)
                with pytest.raises(TimeoutError):
                    connection.recv(100)
                connection.settimeout(60)
                links.heal()
                assert connection.recv(100) == b"three\n"


def test_the_process_ends_with_the_pipe() -> None:
    links = Links([1])
    process = links._process
    assert process.stdin is not None
    process.stdin.close()
    wait_until(lambda: process.poll() is not None, "the process of the relays has ended")
    assert process.stdout is not None
    process.stdout.close()
