"""Error codes of the transaction APIs that depend on the version of the request."""

from ottla.model.errors import ErrorCode


def known_to(code: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """A fenced producer of an older version only knows INVALID_PRODUCER_EPOCH."""
    if code is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
