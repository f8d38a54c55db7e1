"""What Burrow's HTTP API answers with, as documents. Pure."""

from typing import Any

from ottla.monitoring.lag.book import GroupLag, LagBook, PartitionLag
from ottla.monitoring.lag.rules import Status
from ottla.monitoring.lag.window import Commit

Document = dict[str, Any]


def group_status(cluster: str, group: GroupLag | None, name: str, *, everything: bool) -> Document:
    """Of /status without `everything`: bad partitions only. Of a group that is not known: NOTFOUND."""
    if group is None:
        return {
            "cluster": cluster,
            "group": name,
            "status": Status.NOTFOUND.name,
            "complete": 1.0,
            "partitions": [],
            "partition_count": 0,
            "maxlag": None,
            "totallag": 0,
        }
    return {
        "cluster": cluster,
        "group": name,
        "status": group.status.name,
        "complete": group.complete,
        "partitions": [partition_document(each) for each in (group.partitions if everything else group.bad)],
        "partition_count": len(group.partitions),
        "maxlag": None if group.max_lag is None else partition_document(group.max_lag),
        "totallag": group.total_lag,
    }


def partition_document(each: PartitionLag) -> Document:
    return {
        "topic": each.topic,
        "partition": each.partition,
        "owner": each.owner.host if each.owner else "",
        "client_id": each.owner.client_id if each.owner else "",
        "status": each.status.name,
        "start": None if each.start is None else _commit(each.start),
        "end": None if each.end is None else _commit(each.end),
        "current_lag": each.current_lag,
        "complete": each.complete,
        "lag_seconds": each.waiting_s,  # these two are not Burrow's
        "caught_up_seconds": each.caught_up_s,
    }


def _commit(commit: Commit) -> Document:
    return {
        "offset": commit.offset,
        "timestamp": commit.timestamp_ms,
        "observedAt": commit.observed_ms,
        "lag": commit.lag,
    }


def group_detail(book: LagBook, name: str) -> Document | None:
    """Every commit of the window, by topic; partitions without one are empty, so that a position is its number."""
    found = book.commits(name)
    if found is None:
        return None
    topics: dict[str, list[Document]] = {}
    for partition, (commits, owner, lag) in found.items():
        listed = topics.setdefault(partition.topic, [])
        while len(listed) < partition.partition:
            listed.append({"offsets": [], "owner": "", "client_id": "", "current-lag": 0})
        missing: list[Document | None] = [None] * (book.rules.intervals - len(commits))
        listed.append(
            {
                "offsets": [*missing, *(_commit(commit) for commit in commits)],
                "owner": owner.host if owner else "",
                "client_id": owner.client_id if owner else "",
                "current-lag": lag,
            }
        )
    return topics
