"""Settings of who may do what: the authorizer, its super users, and the record that it leaves."""

import dataclasses
import functools

from ottla.config.setting import SettingType, setting

AUTHORIZERS = ("kafka.security.authorizer.AclAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer")
"""The names that Kafka's own authorizers had and have: here both are the one that there is."""


@functools.lru_cache(maxsize=8)
def read_super_users(text: str) -> frozenset[str]:
    """`super.users`: principals with semicolons between them, for there are commas in the names of certificates."""
    return frozenset(name for part in text.split(";") if (name := part.strip()))


def _super_users_problem(text: str) -> str | None:
    for principal in read_super_users(text):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            return f"{principal!r} is not a principal such as User:alice; several stand with semicolons between them"
    return None


def _authorizer_problem(name: str) -> str | None:
    if not name or name in AUTHORIZERS:
        return None
    return (
        f"classes of the JVM cannot be loaded here, so there is no {name}. Access control lists as Kafka has them come "
        f"with {AUTHORIZERS[1]}, or its older name {AUTHORIZERS[0]}"
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AccessSettings:
    """Authorisation, and the audit log."""

    authorizer_class_name: str = setting(
        "",
        check=_authorizer_problem,
        doc="Switches access control lists on: org.apache.kafka.metadata.authorizer.StandardAuthorizer, or the older "
        "name kafka.security.authorizer.AclAuthorizer. Without it everybody may do everything.",
    )
    super_users: str = setting(
        "",
        check=_super_users_problem,
        doc="Principals that may do everything, whatever the access control lists say: User:admin;User:broker. The "
        "principal that brokers use among themselves has to be one of them, or to be allowed ClusterAction.",
    )
    allow_everyone_if_no_acl_found: bool = setting(
        False, doc="Whether everybody may use a resource that no access control list is about."
    )
    audit_log_file: str | None = setting(
        None,
        type=SettingType.STRING,
        doc="Where to write what was asked of the authorizer and what it decided, a line of JSON for each. Without it "
        "there is no audit log. Ottla's own setting.",
    )
    audit_log_allowed: bool = setting(
        False,
        doc="Whether the audit log has what was allowed too, and not only what was denied. Ottla's own setting.",
    )
    audit_log_max_bytes: int = setting(
        100 * 1024 * 1024,
        at_least=4096,
        doc="Size at which the audit log is rolled: FILE becomes FILE.1, FILE.1 becomes FILE.2. Ottla's own setting.",
    )
    audit_log_backups: int = setting(10, at_least=0, doc="How many rolled audit logs are kept. Ottla's own setting.")


def access_notes(settings: AccessSettings) -> list[str]:
    """Settings that are given to an authorizer that there is not."""
    if settings.authorizer_class_name:
        return []
    given = [
        name
        for name, is_given in (
            ("super.users", bool(settings.super_users)),
            ("allow.everyone.if.no.acl.found", settings.allow_everyone_if_no_acl_found),
            ("audit.log.file", settings.audit_log_file is not None),
        )
        if is_given
    ]
    return (
        [f"{', '.join(given)}: no effect without authorizer.class.name, everybody may do everything"] if given else []
    )
