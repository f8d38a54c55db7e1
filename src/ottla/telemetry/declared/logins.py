"""Clients that say who they are."""

from ottla.telemetry.declaring import declare, rate
from ottla.telemetry.metric import Kind, Metric

_SOCKETS = "kafka.server:type=socket-server-metrics,listener={listener},networkProcessor=0"
_PREFIX = "kafka_server_socket_server_metrics_"


def _attribute(name: str, kind: Kind, unit: str, doc: str) -> Metric:
    return declare(_PREFIX + name.replace("-", "_"), _SOCKETS, name, kind, unit, doc, ("listener",))


LOGINS = _attribute(
    "successful-authentication-total",
    Kind.COUNTER,
    "logins",
    "Connections whose client said who it is: TLS handshakes that came to their end, or logins by SASL where a "
    "listener asks for one. Renewals are apart.",
)
LOGINS_FAILED = _attribute(
    "failed-authentication-total",
    Kind.COUNTER,
    "logins",
    "TLS handshakes and first logins by SASL that failed; not those whose peer just went away.",
)
RENEWALS = _attribute(
    "successful-reauthentication-total", Kind.COUNTER, "logins", "Logins by SASL that renewed a session (KIP-368)."
)
RENEWALS_FAILED = _attribute(
    "failed-reauthentication-total",
    Kind.COUNTER,
    "logins",
    "Logins by SASL of a client that was in already, and that failed.",
)
LOGINS_FOR_GOOD = _attribute(
    "successful-authentication-no-reauth-total",
    Kind.COUNTER,
    "logins",
    "Those of `successful_authentication_total` whose client cannot renew its session: by TLS alone, or with "
    "SaslAuthenticate below version 1.",
)
TOTALS = (LOGINS, LOGINS_FAILED, RENEWALS, RENEWALS_FAILED, LOGINS_FOR_GOOD)
RENEWAL_TIME_AVG = _attribute(
    "reauthentication-latency-avg",
    Kind.GAUGE,
    "milliseconds",
    "How long renewals took, from the choice of a mechanism; over the last minute.",
)
RENEWAL_TIME_MAX = _attribute(
    "reauthentication-latency-max", Kind.GAUGE, "milliseconds", "How long the longest renewal of the last minute took."
)
LOGIN_RATE = rate(LOGINS, "successful-authentication-rate")
LOGINS_FAILED_RATE = rate(LOGINS_FAILED, "failed-authentication-rate")
RENEWAL_RATE = rate(RENEWALS, "successful-reauthentication-rate")
RENEWALS_FAILED_RATE = rate(RENEWALS_FAILED, "failed-reauthentication-rate")
