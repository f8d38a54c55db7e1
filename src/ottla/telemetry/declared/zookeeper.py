"""The session with ZooKeeper, and what its servers say of themselves (`mntr`)."""

from ottla.telemetry.declaring import gauge, histogram, meter, own
from ottla.telemetry.metric import Kind, Metric

_SESSION = "kafka.server:type=SessionExpireListener,name=ZooKeeper"

LATENCY = histogram(
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
    "milliseconds",
    "How long ZooKeeper took to answer.",
)
CONNECTS = meter(_SESSION + "SyncConnectsPerSec", "times", "How often the session was connected.")
DISCONNECTS = meter(_SESSION + "DisconnectsPerSec", "times", "How often the connection broke.")
EXPIRES = meter(_SESSION + "ExpiresPerSec", "times", "How often the session ended while it was needed.")
AUTH_FAILURES = meter(_SESSION + "AuthFailuresPerSec", "times", "How often ZooKeeper refused the credentials.")
SESSION_STATE = gauge(
    "kafka.server:type=SessionExpireListener,name=SessionState", "0 or 1", "1 while the session is connected."
)

_LABELS = ("server",)


def _of_server(name: str, unit: str, doc: str) -> Metric:
    return own(f"zookeeper_{name}", Kind.GAUGE, unit, f"{doc} As the server says (`mntr`).", _LABELS)


UP = _of_server("up", "0 or 1", "1 if the server answers; 0 if not, or if `mntr` is not in its 4lw.commands.whitelist.")
AVG_LATENCY = _of_server("avgrequestlatency", "milliseconds", "Mean time to answer a request.")
MIN_LATENCY = _of_server("minrequestlatency", "milliseconds", "Shortest time to answer a request.")
MAX_LATENCY = _of_server("maxrequestlatency", "milliseconds", "Longest time to answer a request.")
OUTSTANDING = _of_server("outstandingrequests", "requests", "Requests that wait to be worked on.")
CONNECTIONS = _of_server("numaliveconnections", "connections", "Connections of clients.")
NODES = _of_server("nodecount", "nodes", "Nodes in its tree.")
WATCHES = _of_server("watchcount", "watches", "Watches that clients have set.")
LEADER_UPTIME = _of_server("leaderuptime", "milliseconds", "How long it has led; of the leader only.")
QUORUM_SIZE = _of_server("status_quorumsize", "servers", "Servers that have a vote.")

MNTR: dict[str, Metric] = {
    "zk_avg_latency": AVG_LATENCY,
    "zk_min_latency": MIN_LATENCY,
    "zk_max_latency": MAX_LATENCY,
    "zk_outstanding_requests": OUTSTANDING,
    "zk_num_alive_connections": CONNECTIONS,
    "zk_znode_count": NODES,
    "zk_watch_count": WATCHES,
    "zk_leader_uptime": LEADER_UPTIME,
    "zk_quorum_size": QUORUM_SIZE,
}
"""By the name that the server gives it."""
