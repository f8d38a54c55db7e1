"""Notices of access control lists that were changed in ZooKeeper by hand: by Kafka's tools before version 4.

These write the lists themselves and then a node below one of two others, which Kafka's brokers watch. Ours tell one
another of changes in their own log, and watch these two besides, so that `kafka-acls.sh --authorizer-properties
zookeeper.connect=` is heard of at once, whosever it is.
"""

from collections.abc import Callable

from ottla.cluster.zookeeper.client import Create, Delete, NoNode, ZooKeeperClient
from ottla.cluster.zookeeper.following import Watched
from ottla.cluster.zookeeper.layout import ACL_CHANGES, change_numbers

_NOTICE = "/acl_changes_"
KEPT_MAX = 100
NONE = -1


class AclNotices:
    def __init__(self, client: ZooKeeperClient, wake: Callable[[], None]) -> None:
        self._client = client
        self._watched = {path: Watched(wake) for path in ACL_CHANGES}
        self._seen = dict.fromkeys(ACL_CHANGES, NONE)
        self._kept = dict.fromkeys(ACL_CHANGES, 0)

    async def came(self) -> bool:
        """Whether there are some that were not there when this was asked before."""
        news = False
        for path, watched in self._watched.items():
            if watched.stale:
                names = await watched.read(lambda watch, path=path: self._client.children(path, watch))  # type: ignore[misc]
                self._kept[path] = len(names)
                newest = max(change_numbers(names), default=NONE)
                news, self._seen[path] = news or newest > self._seen[path], max(newest, self._seen[path])
        return news

    def forget(self) -> None:
        """The connection broke, and the watches with it."""
        for watched in self._watched.values():
            watched.forget()

    async def trim(self) -> None:
        """Drop those that every broker has seen long ago."""
        for path in ACL_CHANGES:
            if self._kept[path] <= KEPT_MAX:
                continue
            self._kept[path] = KEPT_MAX
            for name in sorted(await self._client.children(path))[:-KEPT_MAX]:
                try:
                    await self._client.multi([Delete(f"{path}/{name}")])
                except NoNode:
                    continue  # another has begun with them


def notice_of(path: str, data: bytes) -> Create:
    """One more, below this path."""
    return Create(path + _NOTICE, data, sequential=True)
