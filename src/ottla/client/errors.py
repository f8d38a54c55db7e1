"""What can go wrong between a client and a cluster, apart from the errors that brokers answer with.

OttlaError
  ClientError
    Unreachable          nobody listens at an address, or it does not resolve
    ConnectionLost       a connection ended with requests under way; they may or may not have been done
    RequestTimeout       no answer within the time given; the same holds
    UnsupportedByBroker  broker and client share no version of a request
    InvalidSetting       a client setting that is unknown, contradicts another, or would be ignored
"""

from ottla.model.errors import OttlaError


class ClientError(OttlaError):
    """A request got no answer."""


class Unreachable(ClientError):
    """No connection could be made."""


class ConnectionLost(ClientError):
    """The connection went away before the answer came."""


class RequestTimeout(ClientError):
    """The answer did not come in time."""


class UnsupportedByBroker(ClientError):
    """The broker serves no version of this request that the client can write."""


class InvalidSetting(ClientError):
    """A setting cannot be what it is; the message names it and says what to write."""
