"""The socket that an HTTP listener accepts connections on."""

import errno
import os
import socket

from ottla.http.address import BadListener, HttpAddress


def listen(address: HttpAddress, *, backlog: int) -> socket.socket:
    """A socket that accepts connections from now on; BadListener says why there is none."""
    try:
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise BadListener(f"cannot listen on {address}: {address.host} is not known ({error.strerror})") from None
    # A name such as localhost may have both: then IPv4, which is where clients of a bare port look.
    family, kind, protocol, _, where = min(found, key=lambda each: each[0] != socket.AF_INET)
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(backlog)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise BadListener(f"cannot listen on {address}: {_in_words(error, address)}") from None
    return listening


def _in_words(error: OSError, address: HttpAddress) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {address.port} is in use by another program; choose another, or port 0 for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"no interface of this machine has the address {address.host}"
    if error.errno == errno.EACCES:
        return f"port {address.port} needs rights that this user does not have; choose one above 1023"
    return os.strerror(error.errno) if error.errno else str(error)


def address_of(listening: socket.socket) -> HttpAddress:
    """The real one, which has a port even where a free one was asked for."""
    host, port = listening.getsockname()[:2]
    return HttpAddress(host, port)
