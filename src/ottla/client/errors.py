"""What can go wrong between a client and a cluster, apart from the errors that brokers answer with.

OttlaError
  ClientError
    Unreachable          nobody listens at an address, or it does not resolve
    ConnectionLost       a connection ended with requests under way; they may or may not have been done
    RequestTimeout       no answer within the time given; the same holds
    UnsupportedByBroker  broker and client share no version of a request
    NotTrusted           TLS could not be agreed on: a certificate is not trusted, or the peer speaks no TLS
    AuthenticationFailed the broker, or the token's issuer, refused the client's credentials
    InvalidSetting       a client setting that is unknown, contradicts another, or would be ignored
    DeliveryTimeout      records could not be handed over within delivery.timeout.ms
  ApiError
    ProducerFenced       another producer has the transactional id now
    TransactionLost      the transaction is not open any more: it timed out, or was ended by someone else
    RecordsRefused       a partition refuses these records for good
"""

from ottla.model.errors import ApiError, OttlaError


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


class NotTrusted(ClientError):
    """TLS failed. Trying again cannot help; settings can."""


class AuthenticationFailed(ClientError):
    """SASL failed. Trying again cannot help; other credentials can."""


class InvalidSetting(ClientError):
    """A setting cannot be what it is; the message names it and says what to write."""


class DeliveryTimeout(ClientError):
    """Records were tried again and again until their time was over."""


class ProducerFenced(ApiError):
    """Whoever gets this must stop: its successor is at work."""


class TransactionLost(ApiError):
    """What was written in the transaction is aborted, or will be."""


class RecordsRefused(ApiError):
    """Trying again cannot help."""
