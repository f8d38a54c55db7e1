"""Whom a client believes to be who it says."""

import ssl


def trusting(authorities: str | None = None, pem: str | None = None) -> ssl.SSLContext:
    """A client's context that believes the authorities of a file or a text; without any, those of the system.

    The same with every Python, and as Java has it: whatever is in a trust store is believed, also a certificate that
    another one has signed, and also authorities without the extensions that keytool and openssl leave out unless they
    are asked for, which Python refuses from 3.13 on. The system's are read anew each time; urllib by itself keeps
    those of its first request, from Python 3.12 on.
    """
    context = ssl.create_default_context(cafile=authorities, cadata=pem)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
