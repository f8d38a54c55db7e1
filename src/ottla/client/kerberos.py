"""The client's side of GSSAPI (RFC 4752). The library is an extra, ottla[gssapi]; it talks to the KDC and blocks."""

import importlib
from collections.abc import Generator
from typing import Any, NamedTuple

from ottla.client.errors import AuthenticationFailed, InvalidSetting

NO_LAYER = 1
_NO_REASON = ("Success", "Unknown error")


class Kerberos(NamedTuple):
    """Whose ticket to show to whom. Without a keytab it is the ticket that kinit has left."""

    service: str
    principal: str | None = None
    keytab: str | None = None


def begin(kerberos: Kerberos, host: str) -> Generator[bytes, bytes, None]:
    """The exchange, with its first token made: for that the KDC was asked, so not for an event loop."""
    try:
        library: Any = importlib.import_module("gssapi")
    except ImportError:
        raise InvalidSetting("sasl.mechanism=GSSAPI needs a library: pip install 'ottla[gssapi]'") from None
    try:
        name = library.Name(kerberos.principal, library.NameType.kerberos_principal) if kerberos.principal else None
        # Tickets of a keytab are kept in memory, those of each key by themselves, beside those that a user may have.
        cache = f"MEMORY:ottla {kerberos.principal} {kerberos.keytab}"
        store = {"client_keytab": kerberos.keytab, "ccache": cache} if kerberos.keytab else None
        credentials = library.Credentials(name=name, usage="initiate", store=store)
        target = library.Name(f"{kerberos.service}@{host}", library.NameType.hostbased_service)
        context = library.SecurityContext(
            name=target,
            creds=credentials,
            usage="initiate",
            mech=library.MechType.kerberos,
            flags=library.RequirementFlag.mutual_authentication | library.RequirementFlag.integrity,
        )
        context.__DEFER_STEP_ERRORS__ = False  # a refusal is raised where it is met
        first = context.step()
    except library.exceptions.GSSError as error:
        raise AuthenticationFailed(_no_ticket(kerberos, host, error)) from None
    return _exchange(library, context, first)


def _exchange(library: Any, context: Any, first: bytes) -> Generator[bytes, bytes, None]:
    try:
        answer = yield first
        while not context.complete:
            answer = yield context.step(answer) or b""
        offered = bytes(context.unwrap(answer).message)
        if len(offered) != 4 or not offered[0] & NO_LAYER:
            raise AuthenticationFailed("the broker wants a layer of protection that is not spoken here; use SASL_SSL")
        yield bytes(context.wrap(bytes((NO_LAYER, 0, 0, 0)), False).message)
    except library.exceptions.GSSError as error:
        raise AuthenticationFailed(f"Kerberos: {reason(error)}") from None


def _no_ticket(kerberos: Kerberos, host: str, error: Any) -> str:
    said = f"Kerberos has no ticket for {kerberos.service}/{host}: {reason(error)}"
    if kerberos.keytab:
        return f"{said}; the key is that of {kerberos.principal} (klist -k {kerberos.keytab} shows what is there)"
    return f"{said}; kinit gets one, and so does a keytab (sasl.kerberos.keytab and sasl.kerberos.principal)"


def reason(error: Any) -> str:
    """Why the library refuses: what Kerberos says, and where that is nothing what GSSAPI says."""
    said = [text for text in error.get_all_statuses(error.min_code, False) if text not in _NO_REASON]
    said = said or error.get_all_statuses(error.maj_code, True)
    return ", ".join(" ".join(text.split()) for text in said)
