"""The answer to a request whose handler raised."""

from ottla.broker.handlers.context import CLOSE_CONNECTION, Response
from ottla.model.errors import ErrorCode
from ottla.protocol.apis import API
from ottla.protocol.schema import TopLevel


def failure_response(request: TopLevel, code: ErrorCode, message: str | None) -> Response:
    """A response that says so, where the response has one error for all of it; else the connection is closed.

    Handlers answer errors of single topics and partitions themselves. This is for what nobody foresaw, and a closed
    connection is the one answer to that which every client understands and retries.
    """
    cls = API[request.API_KEY].response_class
    if "error_code" not in cls.__struct_fields__:
        return CLOSE_CONNECTION
    response = cls()
    response.error_code = code  # type: ignore[attr-defined]
    if "error_message" in cls.__struct_fields__:
        response.error_message = message  # type: ignore[attr-defined]
    return response
