"""Clusters that this process is connected to. They are kept: the next task of a worker finds its connections open."""

from ottla.client.cluster import Cluster
from ottla.client.settings import ClientSettings
from ottla.spark import loop

_clusters: dict[ClientSettings, Cluster] = {}


def shared_cluster(settings: ClientSettings) -> Cluster:
    """The cluster of these settings. Use it on the loop of `ottla.spark.loop` only, and do not close it."""
    cluster = _clusters.get(settings)
    if cluster is None:
        cluster = _clusters.setdefault(settings, settings.cluster())
    return cluster


loop.after_fork(_clusters.clear)
