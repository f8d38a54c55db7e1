"""ZooKeeper's nodes as a model: zxids, versions, sequential and ephemeral nodes, all or nothing. No time, no loop."""

from collections.abc import Callable, Iterator, Sequence

from ottla.cluster.zookeeper.client import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    RequestRefused,
    Result,
    Set,
    Stat,
)


class Node:
    __slots__ = ("children", "created", "data", "modified", "numbered", "owner", "version")

    def __init__(self, data: bytes, zxid: int, owner: int) -> None:
        self.data = data
        self.created = self.modified = zxid
        self.owner = owner
        self.version = 0
        self.children: dict[str, None] = {}
        """In the order of creation: a set's order would differ from run to run."""
        self.numbered = 0
        """How many children it ever had: the number of the next sequential one."""

    def stat(self) -> Stat:
        return Stat(self.version, self.created, self.modified, self.owner, len(self.children))


class Touched:
    """Which watches a change sets off."""

    def __init__(self) -> None:
        self.data: dict[str, None] = {}
        self.children: dict[str, None] = {}


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


class Tree:
    def __init__(self) -> None:
        self.zxid = 0
        self._nodes: dict[str, Node] = {"/": Node(b"", 0, 0)}

    def node(self, path: str) -> Node:
        found = self._nodes.get(path)
        if found is None:
            raise NoNode(path)
        return found

    def find(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def paths(self) -> Iterator[str]:
        yield from self._nodes

    def apply(self, operations: Sequence[Operation], session: int) -> tuple[list[Result], Touched]:
        """All with one zxid, or a RequestRefused that says which could not be done."""
        self.zxid += 1
        undo: list[Callable[[], None]] = []
        results: list[Result] = []
        touched = Touched()
        for index, operation in enumerate(operations):
            try:
                results.append(self._apply(operation, session, undo, touched))
            except RequestRefused as error:
                for step in reversed(undo):
                    step()
                error.index = index
                raise
        return results, touched

    def end_session(self, session: int) -> Touched:
        """Its ephemeral nodes go, at one moment."""
        touched = Touched()
        owned = [path for path, node in self._nodes.items() if node.owner == session]
        self.zxid += 1
        for path in owned:
            self._delete(Delete(path), [], touched)
        return touched

    def _apply(
        self, operation: Operation, session: int, undo: list[Callable[[], None]], touched: Touched
    ) -> str | Stat | None:
        if isinstance(operation, Create):
            return self._create(operation, session, undo, touched)
        if isinstance(operation, Set):
            return self._set(operation, undo, touched)
        if isinstance(operation, Delete):
            self._delete(operation, undo, touched)
            return None
        self._at_version(operation)
        return None

    def _create(self, wanted: Create, session: int, undo: list[Callable[[], None]], touched: Touched) -> str:
        above = self._nodes.get(parent_of(wanted.path))
        if above is None:
            raise NoNode(wanted.path)
        if above.owner:
            raise RequestRefused(wanted.path)  # an ephemeral node has no children
        path = f"{wanted.path}{above.numbered:010d}" if wanted.sequential else wanted.path
        if path in self._nodes:
            raise NodeExists(path)
        self._nodes[path] = Node(wanted.data, self.zxid, session if wanted.ephemeral else 0)
        name = path.rpartition("/")[2]
        above.children[name] = None
        above.numbered += 1

        def revert() -> None:
            del self._nodes[path], above.children[name]
            above.numbered -= 1

        undo.append(revert)
        touched.data[path] = None
        touched.children[parent_of(path)] = None
        return path

    def _set(self, wanted: Set, undo: list[Callable[[], None]], touched: Touched) -> Stat:
        node = self._at_version(wanted)
        before = (node.data, node.version, node.modified)
        node.data, node.version, node.modified = wanted.data, node.version + 1, self.zxid

        def revert() -> None:
            node.data, node.version, node.modified = before

        undo.append(revert)
        touched.data[wanted.path] = None
        return node.stat()

    def _delete(self, wanted: Delete, undo: list[Callable[[], None]], touched: Touched) -> None:
        node = self._at_version(wanted)
        if node.children:
            raise NotEmpty(wanted.path)
        above, name = self.node(parent_of(wanted.path)), wanted.path.rpartition("/")[2]
        del self._nodes[wanted.path], above.children[name]

        def revert() -> None:
            self._nodes[wanted.path] = node
            above.children[name] = None

        undo.append(revert)
        touched.data[wanted.path] = None
        touched.children[wanted.path] = None
        touched.children[parent_of(wanted.path)] = None

    def _at_version(self, wanted: Set | Delete | Check) -> Node:
        node = self.node(wanted.path)
        if wanted.version not in (ANY_VERSION, node.version):
            raise BadVersion(wanted.path)
        return node
