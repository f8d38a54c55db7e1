"""The access file: roles, users with password hashes, and which role groups of an identity provider have.

    roles:
      support: {right: viewer, topics: ["orders*"], mask: {"orders*": [ssn, $.card.number]}}
    users:
      alice: {password: "scrypt$...", role: admin}
    groups:
      kafka-admins: admin

YAML (with pyyaml, which `ottla[spark]` brings) or JSON. `viewer`, `operator` and `admin` are there from the start.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ottla.console.access.masking import BadField, parse_fields
from ottla.console.access.passwords import BadHash, PasswordHash, decoy, read_hash
from ottla.console.access.roles import BUILT_IN, PATTERN_CHARACTERS_MAX, RIGHTS, Role
from ottla.model.errors import OttlaError

FILE_BYTES_MAX = 10 * 1024 * 1024


class BadAccessFile(OttlaError):
    """What is wrong with the file, and where in it."""


class _RoleEntry(msgspec.Struct, forbid_unknown_fields=True):
    right: str
    topics: list[str] = msgspec.field(default_factory=lambda: ["*"])
    mask: dict[str, list[str]] = msgspec.field(default_factory=dict)


class _UserEntry(msgspec.Struct, forbid_unknown_fields=True):
    password: str
    role: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    roles: dict[str, _RoleEntry] = msgspec.field(default_factory=dict)
    users: dict[str, _UserEntry] = msgspec.field(default_factory=dict)
    groups: dict[str, str] = msgspec.field(default_factory=dict)


class User(NamedTuple):
    name: str
    password: PasswordHash
    role: Role


class AccessFile(NamedTuple):
    roles: Mapping[str, Role] = BUILT_IN
    users: Mapping[str, User] = {}
    groups: Mapping[str, Role] = {}

    def check(self, name: str, password: str) -> Role | None:
        """The role of whoever knows the password. Takes as long for names that nobody has: call it in a thread."""
        user = self.users.get(name)
        if user is None:
            _DECOY.fits(password)
            return None
        return user.role if user.password.fits(password) else None


_DECOY = decoy()


def read_access_file(path: str) -> AccessFile:
    """BadAccessFile."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadAccessFile(f"{path}: {error.strerror}") from None
    if len(data) > FILE_BYTES_MAX:
        raise BadAccessFile(f"{path}: larger than {FILE_BYTES_MAX} bytes")
    try:
        found = _decode(data, path)
        return parse_access(found)
    except BadAccessFile as error:
        raise BadAccessFile(f"{path}: {error}") from None


def _decode(data: bytes, path: str) -> Any:
    if path.endswith(".json") or data.lstrip()[:1] == b"{":
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadAccessFile(f"not JSON: {error}") from None
    try:
        return msgspec.yaml.decode(data)
    except ImportError:
        raise BadAccessFile("YAML needs pyyaml (pip install pyyaml); JSON needs nothing") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadAccessFile(f"not YAML: {error}") from None


def parse_access(document: Any) -> AccessFile:
    try:
        found = msgspec.convert(document if document is not None else {}, _File)
    except msgspec.ValidationError as error:
        raise BadAccessFile(str(error)) from None
    roles = {**BUILT_IN, **{name: _role(name, entry) for name, entry in found.roles.items()}}
    users = {name: _user(name, entry, roles) for name, entry in found.users.items()}
    groups = {group: _known(roles, role, f"groups.{group}") for group, role in found.groups.items()}
    return AccessFile(roles, users, groups)


def _role(name: str, entry: _RoleEntry) -> Role:
    if entry.right not in RIGHTS:
        raise BadAccessFile(f"roles.{name}.right is one of {', '.join(RIGHTS)}, not `{entry.right}`")
    for pattern in (*entry.topics, *entry.mask):
        if not pattern or len(pattern) > PATTERN_CHARACTERS_MAX:
            raise BadAccessFile(f"roles.{name}: a pattern of topics has 1 to {PATTERN_CHARACTERS_MAX} characters")
    for pattern, fields in entry.mask.items():
        try:
            parse_fields(fields)
        except BadField as error:
            raise BadAccessFile(f"roles.{name}.mask.{pattern}: {error}") from None
    masked = tuple((pattern, tuple(fields)) for pattern, fields in entry.mask.items())
    return Role(name, RIGHTS[entry.right], tuple(entry.topics), masked)


def _user(name: str, entry: _UserEntry, roles: Mapping[str, Role]) -> User:
    try:
        password = read_hash(entry.password)
    except BadHash as error:
        raise BadAccessFile(f"users.{name}.password: {error}") from None
    return User(name, password, _known(roles, entry.role, f"users.{name}.role"))


def _known(roles: Mapping[str, Role], name: str, where: str) -> Role:
    if name not in roles:
        raise BadAccessFile(f"{where}: there is no role `{name}`, but {', '.join(sorted(roles))}")
    return roles[name]
