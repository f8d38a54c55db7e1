"""Connections that come, how often, and how long they are kept waiting by limits."""

from ottla.telemetry.declaring import declare, own
from ottla.telemetry.metric import Kind

_SOCKETS = "kafka.server:type=socket-server-metrics"
_NAME = "kafka_server_socket_server_metrics_"
_WINDOW = "Over the window of quotas, which is 10 to 11 seconds."

BROKER_ACCEPT_RATE = declare(
    _NAME + "broker_connection_accept_rate",
    _SOCKETS,
    "broker-connection-accept-rate",
    Kind.GAUGE,
    "connections per second",
    "Connections that came, as `max.connection.creation.rate` counts them: not those of other brokers where these have "
    f"a listener to themselves. {_WINDOW}",
)
ACCEPT_RATE = declare(
    _NAME + "connection_accept_rate",
    _SOCKETS + ",listener={listener}",
    "connection-accept-rate",
    Kind.GAUGE,
    "connections per second",
    f"Connections that came through a listener, let in or not. {_WINDOW}",
    ("listener",),
)
ADDRESS_ACCEPT_RATE = declare(
    _NAME + "ip_connection_accept_rate",
    _SOCKETS + ",ip={ip}",
    "connection-accept-rate",
    Kind.GAUGE,
    "connections per second",
    "Connections that came from an address, as `connection_creation_rate` counts them; only of addresses that have "
    f"such a quota, and of a thousand at most. {_WINDOW}",
    ("ip",),
)
ACCEPT_WAIT = declare(
    _NAME + "connection_accept_throttle_time",
    _SOCKETS + ",listener={listener}",
    "connection-accept-throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long connections were kept waiting by the rates of broker and listener, on average of those that were.",
    ("listener",),
)
ADDRESS_ACCEPT_WAIT = declare(
    _NAME + "ip_connection_accept_throttle_time",
    _SOCKETS + ",listener={listener}",
    "ip-connection-accept-throttle-time",
    Kind.GAUGE,
    "milliseconds",
    "How long connections were kept waiting, before they were closed, by the rate of their address, on average.",
    ("listener",),
)
BLOCKED_SECONDS = own(
    "ottla_listener_blocked_seconds_total",
    Kind.COUNTER,
    "seconds",
    "How long a listener accepted nobody, because of a rate or because all places were taken.",
    ("listener",),
)
ACCEPTOR_BLOCKED = declare(
    "kafka_network_acceptor_acceptorblockedpercent",
    "kafka.network:type=Acceptor,name=AcceptorBlockedPercent,listener={listener}",
    "OneMinuteRate",
    Kind.GAUGE,
    "0 to 1",
    "How much of the last minute a listener accepted nobody, because of a rate or because all places were taken.",
    ("listener",),
    rate_of="ottla_listener_blocked_seconds_total",
)
SOFTWARE = declare(
    _NAME + "connections",
    _SOCKETS + ",listener={listener},clientSoftwareName={client_software_name},"
    "clientSoftwareVersion={client_software_version}",
    "connections",
    Kind.GAUGE,
    "connections",
    "Connections that are open, by what their clients say they run; of a hundred kinds at most.",
    ("listener", "client_software_name", "client_software_version"),
    also=("kafka_server_socketservermetrics_connections",),
)
