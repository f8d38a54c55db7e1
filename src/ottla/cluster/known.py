"""Which documents there are: the version of each, and the data of those that are not in the image."""

from collections.abc import Iterator, Sequence

from ottla.cluster.acl_documents import ACL_PATHS
from ottla.cluster.documents import topic_config_path, topic_of
from ottla.cluster.store import ABSENT, Document, VersionConflict, Write
from ottla.cluster.token_documents import TOKENS

_IN_THE_IMAGE = (
    "/brokers/topics/", "/config/topics/", "/config/brokers/", "/config/groups/", "/config/client-metrics/",
    "/config/users/", "/config/clients/", "/config/ips/", *ACL_PATHS, TOKENS,
)  # fmt: skip


class KnownDocuments:
    def __init__(self) -> None:
        self._versions: dict[str, int] = {}
        self._data: dict[str, bytes] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._versions

    def version(self, path: str) -> int:
        return self._versions.get(path, ABSENT)

    def read(self, path: str) -> Document | None:
        data = self._data.get(path)
        return None if data is None else Document(data, self._versions[path])

    def check(self, writes: Sequence[Write]) -> None:
        """VersionConflict if a document is not what whoever decided this believed it to be."""
        expected = [(path, version) for path, _, version in writes]
        for path, version in (*expected, *((path, ABSENT) for path in settings_believed_absent(writes))):
            if (found := self.version(path)) != version:
                raise VersionConflict(path, version, found)

    def remember(self, path: str, data: bytes | None, version: int) -> None:
        """It was written, or with None deleted."""
        if data is None:
            self._versions.pop(path, None)
            self._data.pop(path, None)
            return
        self._versions[path] = version
        if not path.startswith(_IN_THE_IMAGE):
            self._data[path] = data


def settings_believed_absent(writes: Sequence[Write]) -> Iterator[str]:
    """Who deletes a topic without its settings knows of none. Those that came meanwhile must not outlive it."""
    paths = {write.path for write in writes}
    for write in writes:
        topic = topic_of(write.path) if write.data is None and write.expected != ABSENT else None
        if topic is not None and topic_config_path(topic) not in paths:
            yield topic_config_path(topic)
