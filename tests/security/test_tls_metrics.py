"""Handshakes of TLS are logins: those that come to their end and those that fail are counted, as in Kafka."""

import contextlib
import re
import socket
import ssl
import urllib.request

from tests.security.conftest import PATIENCE_S, Credentials

from ottla.testing import RunningBroker
from ottla.testing.tls import Certificates
from ottla.testing.waiting import wait_until


def logins(broker: RunningBroker, listener: str, outcome: str) -> int:
    url = re.findall(r"HTTP listener started on (\S+)", broker.log_text())[-1]
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENCE_S) as answer:
        text = answer.read().decode()
    name = f"kafka_server_socket_server_metrics_{outcome}_total"
    found = re.search(rf'^{name}\{{listener="{listener}"\}} (\d+)$', text, re.MULTILINE)
    return int(found[1]) if found else 0


def knock(address: tuple[str, int], context: ssl.SSLContext) -> None:
    """With TLS 1.3 a client hears of its failure when it reads."""
    with (
        contextlib.suppress(ssl.SSLError, ConnectionError, TimeoutError),
        socket.create_connection(address, PATIENCE_S) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        tls.settimeout(0.2)
        tls.recv(1)


def test_good_and_bad_handshakes_are_counted_and_who_goes_away_is_not(
    secured: RunningBroker, certificates: Certificates, strangers: Certificates
) -> None:
    good, none = "successful_authentication", "successful_authentication_no_reauth"
    bad = "failed_authentication"
    before = {(each, outcome): logins(secured, each, outcome) for each in ("TLS", "MTLS") for outcome in (good, bad)}
    knock(secured.listeners["TLS"], Credentials(ca=certificates.ca).context())
    wait_until(lambda: logins(secured, "TLS", good) == before["TLS", good] + 1, "a good handshake is counted")
    assert logins(secured, "TLS", none) == logins(secured, "TLS", good), "by TLS alone nobody renews a session"

    with socket.create_connection(secured.listeners["TLS"], PATIENCE_S) as gone:
        gone.sendall(b"\x16\x03\x01")  # and goes away
    knock(secured.listeners["TLS"], Credentials(ca=strangers.ca).context())
    wait_until(lambda: logins(secured, "TLS", bad) == before["TLS", bad] + 1, "who does not trust us is counted")

    knock(secured.listeners["MTLS"], Credentials(ca=certificates.ca).context())
    nameless = Credentials(ca=certificates.ca, keys=certificates.pem("NAMELESS"))
    knock(secured.listeners["MTLS"], nameless.context())
    wait_until(lambda: logins(secured, "MTLS", bad) == before["MTLS", bad] + 2, "no certificate, and no name for one")
    alice = Credentials(ca=certificates.ca, keys=certificates.pem("alice"))
    knock(secured.listeners["MTLS"], alice.context())
    wait_until(lambda: logins(secured, "MTLS", good) == before["MTLS", good] + 1, "a client with a certificate")
