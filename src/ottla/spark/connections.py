"""Clusters that this process is connected to. They are kept: the next task of a worker finds its connections open."""

from ottla.client.cluster import Cluster
from ottla.client.settings import ClientSettings
from ottla.spark import loop

KAFKA_PREFIX = "kafka."
"""Options of the data source that begin with it are settings of the client."""
START_PATIENCE_S = 5.0
"""Long enough for a broker that is being started anew."""

_clusters: dict[tuple[ClientSettings, bool], Cluster] = {}


def shared_cluster(settings: ClientSettings, *, patient: bool = True) -> Cluster:
    """The cluster of these settings. Use it on the loop of `ottla.spark.loop` only, and do not close it.

    A query that runs is `patient` with brokers that are away; one that starts wants to hear of a wrong address soon.
    """
    cluster = _clusters.get((settings, patient))
    if cluster is None:
        patience_s = settings.total_timeout_s if patient else START_PATIENCE_S
        cluster = _clusters.setdefault((settings, patient), settings.cluster(patience_s=patience_s))
    return cluster


loop.after_fork(_clusters.clear)
