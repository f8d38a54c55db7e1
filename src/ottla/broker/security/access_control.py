"""Access control of one broker as its settings want it: the authorizer, and who is told of what it decides."""

import logging
from collections.abc import Callable, Iterator

from ottla.broker.security import authorizer_log
from ottla.broker.security.acls.authorizer import Authorizer, Decision
from ottla.broker.security.audit import AuditLog
from ottla.cluster.image import ClusterImage, ImageChange
from ottla.config.access import read_super_users
from ottla.config.live import LiveConfig
from ottla.telemetry import catalogue
from ottla.telemetry.registry import Telemetry


class AccessControl:
    def __init__(self, config: LiveConfig, telemetry: Telemetry | None = None) -> None:
        settings = config.static
        self.authorizer: Authorizer | None = None
        self.audit: AuditLog | None = None
        if telemetry is not None:
            telemetry.observe(catalogue.AUDIT_DROPPED, self._read_dropped)
        if not settings.authorizer_class_name:
            return
        self.authorizer = Authorizer(
            lambda: read_super_users(config.broker.super_users),
            lambda: config.broker.allow_everyone_if_no_acl_found,
        )
        if settings.audit_log_file is not None:
            self.audit = AuditLog(settings.audit_log_file, settings.audit_log_max_bytes, settings.audit_log_backups)
        self.authorizer.observe_denied = _told(self.audit)
        logs_allowed = authorizer_log.logger.isEnabledFor(logging.DEBUG)
        audits_allowed = self.audit if settings.audit_log_allowed else None
        if logs_allowed or audits_allowed is not None:
            self.authorizer.observe_allowed = _told(audits_allowed)

    def load(self, image: ClusterImage) -> None:
        if self.authorizer is not None:
            self.authorizer.load(image)

    def apply(self, change: ImageChange) -> None:
        if self.authorizer is not None:
            self.authorizer.apply(change)

    def close(self) -> None:
        if self.audit is not None:
            self.audit.close()

    def _read_dropped(self) -> Iterator[tuple[tuple[str, ...], int]]:
        yield (), 0 if self.audit is None else self.audit.dropped


def _told(audit: AuditLog | None) -> Callable[[Decision], None]:
    """The authorizer's own log hears of everything, the audit log of what was asked for by name."""

    def tell(decision: Decision) -> None:
        authorizer_log.tell(decision)
        if audit is not None and not decision.probe:
            audit.note(decision)

    return tell
