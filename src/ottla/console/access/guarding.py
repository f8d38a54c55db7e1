"""What a request must be like before anybody is asked who they are. Pure: looks at headers and names alone.

Three things that a browser can be made to do by another site: to ask us under that site's name (DNS rebinding: the Host
header tells), to send a form here (Origin and Sec-Fetch-Site tell), and to send us on elsewhere (`next`).
"""

import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

_PORT = re.compile(r":[0-9]{1,5}\Z")
_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]{0,2000}")
LOCAL_NAMES = frozenset({"localhost"})


def is_our_host(host: str | None, names: Collection[str]) -> bool:
    """An address is always ours: no name was looked up for it, so none can have been turned on us."""
    if not host:
        return False
    bare = _PORT.sub("", host).rstrip(".").lower()
    if bare in LOCAL_NAMES or bare in names:
        return True
    try:
        ipaddress.ip_address(bare.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def foreign_site(headers: Mapping[str, str]) -> str | None:
    """Why a request that changes something comes from another site; None: nothing says so."""
    fetched = headers.get("sec-fetch-site")
    if fetched is not None and fetched not in {"same-origin", "none"}:
        return f"the browser says that it comes from another site ({fetched[:20]})"
    origin = headers.get("origin")
    if origin is None:
        return None
    try:
        where = urlsplit(origin)
    except ValueError:
        return "its Origin is no address"
    # Behind a proxy that speaks TLS for us the scheme is another; name and port are not.
    if where.scheme not in {"http", "https"} or where.netloc.lower() != headers.get("host", "").lower():
        return f"its Origin is {origin[:100]!r}"
    return None


def safe_path(wanted: str, otherwise: str = "/") -> str:
    """A place of ours to go on to: never an address elsewhere, never a header of its own."""
    return wanted if _PATH.fullmatch(wanted) else otherwise
