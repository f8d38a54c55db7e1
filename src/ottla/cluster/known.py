"""Which documents there are: the version of each, and the data of those that are not in the image."""

from ottla.cluster.store import ABSENT, Document

_IN_THE_IMAGE = ("/brokers/topics/", "/config/topics/", "/config/brokers/", "/config/groups/")


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

    def remember(self, path: str, data: bytes | None, version: int) -> None:
        """It was written, or with None deleted."""
        if data is None:
            self._versions.pop(path, None)
            self._data.pop(path, None)
            return
        self._versions[path] = version
        if not path.startswith(_IN_THE_IMAGE):
            self._data[path] = data
