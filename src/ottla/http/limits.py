"""What one HTTP listener takes from its clients before it stops listening to them."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HttpLimits:
    connections_max: int = 256
    """Those beyond get 503; those beyond that again (`connections_spare`) are closed unheard."""
    connections_spare: int = 64
    header_bytes_max: int = 32 * 1024
    header_seconds_max: float = 15.0
    """From the first byte of a request, or from the connection for its first one, to the end of its headers."""
    body_bytes_max: int = 1024 * 1024
    body_seconds_max: float = 30.0
    """For a whole body, from when somebody begins to read it."""
    write_seconds_max: float = 30.0
    """Without the client taking a single byte of what waits for it."""
    idle_seconds_max: int = 60
    """Between two requests of a connection."""
    stop_seconds_max: float = 5.0
    """For requests that are under way when the listener stops; then they are cut off."""


def too_large_headers(limits: HttpLimits) -> str:
    return f"headers have at most {limits.header_bytes_max} bytes here"
