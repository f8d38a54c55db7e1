"""The proxy that other tests hold requests with leaves nothing behind."""

import asyncio
import gc
import socket
import threading

from tests.spark.gate import Gate


def test_a_connection_that_comes_while_it_closes_leaves_no_socket() -> None:
    """A socket that is left fails whatever test runs when the garbage is collected."""
    gate, let_go = Gate(lambda: 1), threading.Event()
    gate.start()
    gate._loop.call_soon_threadsafe(let_go.wait)
    with socket.create_connection(("127.0.0.1", gate.port)):
        ending = asyncio.run_coroutine_threadsafe(gate.end_connections(), gate._loop)
        let_go.set()  # in one turn of the loop it is told to end, and sees the connection
        ending.result(60)
    gate.close()
    gc.collect()
