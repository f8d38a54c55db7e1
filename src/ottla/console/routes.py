"""The one table of what is served: below `/c/CLUSTER` as pages, below `/api/c/CLUSTER` as JSON."""

from ottla.console.app import Entry
from ottla.console.asking import Right
from ottla.console.pages import (
    acls,
    backups,
    brokers,
    dead_letters,
    events,
    groups,
    messages,
    mirroring,
    overview,
    pipelines,
    produce,
    quotas,
    reassignment,
    schemas,
    topic_changes,
    topics,
    users,
)

_OPERATOR, _ADMIN = Right.OPERATOR, Right.ADMIN
_LIST = ("q", "sort", "page", "per_page")
_PLAN = ("goal", "broker", "factor", "topics", "throttle")
_RESTORE = ("place", "backup", "topics", "prefix", "no_groups")
_RULE = ("principal", "permission", "operation", "resource", "name", "pattern", "host")

ENTRIES: tuple[Entry, ...] = (
    Entry("GET", "/", overview.show, "Health, traffic, lag and what changed lately", "overview.html"),
    Entry("GET", "/events", events.follow, "A stream that tells of each new look", raw=True),
    Entry("GET", "/brokers", brokers.list_brokers, "All brokers", "brokers.html"),
    Entry("GET", "/brokers/{broker}", brokers.show, "One broker: disks and settings", "broker.html", fields=("all",)),
    Entry(
        "POST", "/brokers/{broker}/settings", brokers.change_setting, "Change a setting of a broker",
        right=_ADMIN, changes=True, fields=("name", "value", "reset", "all_brokers"),
    ),
    Entry("GET", "/topics", topics.list_topics, "All topics", "topics.html", fields=(*_LIST, "internal")),
    Entry("GET", "/topics/new", topic_changes.new, "The form for a new topic", "topic_new.html", _OPERATOR),
    Entry(
        "POST", "/topics", topic_changes.create, "Create a topic",
        right=_OPERATOR, changes=True, fields=("name", "partitions", "replication", "settings", "validate"),
    ),
    Entry("GET", "/topics/{topic}", topics.show, "A topic: partitions, skew, readers", "topic.html", fields=("page",)),
    Entry("GET", "/topics/{topic}/producers", topics.show_producers, "Producers of a topic", "producers.html"),
    Entry(
        "GET", "/topics/{topic}/settings", topic_changes.settings_form,
        "Settings with their defaults; with set.NAME=VALUE what would change", "topic_settings.html",
    ),
    Entry(
        "POST", "/topics/{topic}/settings", topic_changes.change_settings, "Change settings of a topic",
        right=_OPERATOR, changes=True, fields=("set.NAME",),
    ),
    Entry("GET", "/topics/{topic}/manage", topic_changes.manage, "Grow, empty, delete", "topic_manage.html", _OPERATOR),
    Entry(
        "POST", "/topics/{topic}/partitions", topic_changes.grow, "Grow a topic",
        right=_OPERATOR, changes=True, fields=("partitions",),
    ),
    Entry(
        "POST", "/topics/{topic}/delete-records", topic_changes.delete_records, "Delete records",
        right=_OPERATOR, changes=True, fields=("partition", "offset", "confirm"),
    ),
    Entry(
        "POST", "/topics/{topic}/delete", topic_changes.delete, "Delete a topic",
        right=_OPERATOR, changes=True, fields=("confirm",),
    ),
    Entry(
        "GET", "/topics/{topic}/messages", messages.show, "Search records", "messages.html",
        fields=("q", "limit"),
    ),
    Entry("GET", "/topics/{topic}/messages/stream", messages.follow, "A search, or a tail, as a stream", raw=True),
    Entry("GET", "/topics/{topic}/messages/export", messages.export_all, "All that a search finds as a file", raw=True),
    Entry(
        "GET", "/topics/{topic}/messages/record", messages.show_one, "One record in full", "message.html",
        fields=("partition", "offset"),
    ),
    Entry(
        "GET", "/topics/{topic}/produce", produce.form, "The form for a record", "produce.html", _OPERATOR,
        fields=("partition", "offset"),
    ),
    Entry(
        "POST", "/topics/{topic}/produce", produce.send, "Write a record",
        right=_OPERATOR, changes=True,
        fields=(
            "key", "key_form", "key_subject", "value", "value_form", "value_subject", "headers", "partition", "count",
        ),
    ),
    Entry("GET", "/groups", groups.list_groups, "All groups with their lag", "groups.html", fields=(*_LIST, "status")),
    Entry("GET", "/group", groups.show, "One group: offsets, lag, members", "group.html", fields=("id", *_LIST)),
    Entry(
        "GET", "/group/reset", groups.preview_reset, "What a reset would do", "group_reset.html", _OPERATOR,
        fields=("id", "to", "value", "topic", "partitions"),
    ),
    Entry(
        "POST", "/group/reset", groups.reset, "Set offsets of a group",
        right=_OPERATOR, changes=True, fields=("id", "to", "value", "topic", "partitions"),
    ),
    Entry("POST", "/group/undo", groups.undo_reset, "Undo a reset", right=_OPERATOR, changes=True, fields=("id",)),
    Entry(
        "POST", "/group/delete", groups.delete, "Delete a group",
        right=_OPERATOR, changes=True, fields=("id", "confirm"),
    ),
    Entry(
        "GET", "/reassignment", reassignment.show, "Moves under way; with a goal, a plan", "reassignment.html",
        fields=_PLAN,
    ),
    Entry(
        "POST", "/reassignment", reassignment.execute, "Move partitions by a plan",
        right=_OPERATOR, changes=True, fields=_PLAN,
    ),
    Entry(
        "POST", "/reassignment/cancel", reassignment.cancel, "Give up moves",
        right=_OPERATOR, changes=True, fields=("topic", "partition"),
    ),
    Entry(
        "POST", "/reassignment/unthrottle", reassignment.unthrottle, "Take throttles away",
        right=_OPERATOR, changes=True, fields=("topics",),
    ),
    Entry(
        "POST", "/reassignment/elect", reassignment.elect, "Elect preferred leaders", right=_OPERATOR, changes=True,
    ),
    Entry("GET", "/pipelines", pipelines.show, "Pipelines, as their drivers tell", "pipelines.html"),
    Entry(
        "POST", "/pipelines/start", pipelines.start, "Start a pipeline of the folder of pipelines",
        right=_ADMIN, changes=True, fields=("file", "confirm"),
    ),
    Entry(
        "POST", "/pipelines/stop", pipelines.stop, "Stop a pipeline",
        right=_OPERATOR, changes=True, fields=("pipeline", "confirm"),
    ),
    Entry("GET", "/mirroring", mirroring.show, "Flows between clusters", "mirroring.html"),
    Entry(
        "POST", "/mirroring/pause", mirroring.pause, "Let a flow rest",
        right=_OPERATOR, changes=True, fields=("flow", "confirm"),
    ),
    Entry(
        "POST", "/mirroring/resume", mirroring.resume, "Let a flow go on",
        right=_OPERATOR, changes=True, fields=("flow", "confirm"),
    ),
    Entry(
        "POST", "/mirroring/promote", mirroring.promote, "Make a standby the cluster that clients use",
        right=_ADMIN, changes=True, fields=("flow", "confirm"),
    ),
    Entry(
        "POST", "/mirroring/failback", mirroring.fail_back, "Make the cluster that was active the standby",
        right=_ADMIN, changes=True, fields=("flow", "discard", "confirm"),
    ),
    Entry(
        "POST", "/mirroring/start", mirroring.start, "Start a mirror",
        right=_ADMIN, changes=True, fields=("file", "confirm"),
    ),
    Entry(
        "POST", "/mirroring/stop", mirroring.stop, "Stop a flow that runs",
        right=_OPERATOR, changes=True, fields=("flow", "confirm"),
    ),
    Entry("GET", "/backups", backups.show, "Backups, and what runs in their places", "backups.html"),
    Entry(
        "POST", "/backups/run", backups.take, "Take a backup",
        right=_OPERATOR, changes=True, fields=("place", "topics", "full"),
    ),
    Entry(
        "POST", "/backups/verify", backups.verify, "Read a backup back and compare it",
        right=_OPERATOR, changes=True, fields=("place", "backup"),
    ),
    Entry(
        "GET", "/backups/restore", backups.preview_restore, "What a restore would do", "backup_restore.html", _ADMIN,
        fields=_RESTORE,
    ),
    Entry(
        "POST", "/backups/restore", backups.restore, "Restore a backup",
        right=_ADMIN, changes=True, fields=(*_RESTORE, "confirm"),
    ),
    Entry(
        "GET", "/dead-letters", dead_letters.show, "Dead letters, with what befell them", "dead_letters.html",
        fields=("topic", "q", "kind"),
    ),
    Entry(
        "GET", "/dead-letters/letter", dead_letters.show_one, "One dead letter", "dead_letter.html",
        fields=("topic", "partition", "offset"),
    ),
    Entry(
        "POST", "/dead-letters/send", dead_letters.send, "Send dead letters back",
        right=_OPERATOR, changes=True, fields=("topic", "place", "value", "value_form", "all", "q", "kind", "confirm"),
    ),
    Entry("GET", "/schemas", schemas.list_subjects, "Subjects of the registry", "schemas.html", fields=_LIST),
    Entry("GET", "/schema", schemas.show, "A schema and its versions", "schema.html", fields=("subject", "version")),
    Entry(
        "POST", "/schemas/check", schemas.check, "Whether a schema would fit", "schema_check.html", _OPERATOR,
        fields=("subject", "type", "schema"),
    ),
    Entry(
        "POST", "/schemas/register", schemas.register, "Register a schema",
        right=_OPERATOR, changes=True, fields=("subject", "type", "schema"),
    ),
    Entry(
        "POST", "/schemas/level", schemas.set_level, "What new versions have to be",
        right=_OPERATOR, changes=True, fields=("subject", "level"),
    ),
    Entry(
        "POST", "/schemas/delete", schemas.delete, "Delete a subject",
        right=_OPERATOR, changes=True, fields=("subject", "confirm"),
    ),
    Entry("GET", "/acls", acls.show, "Rules, as sentences", "acls.html", fields=(*_LIST, "who", "kind", "name")),
    Entry("POST", "/acls", acls.add, "Add a rule", right=_ADMIN, changes=True, fields=_RULE),
    Entry("POST", "/acls/remove", acls.remove, "Remove a rule", right=_ADMIN, changes=True, fields=_RULE),
    Entry("GET", "/users", users.show, "Users with SCRAM credentials", "users.html", fields=_LIST),
    Entry(
        "POST", "/users", users.set_password, "Add a user, or change a password",
        right=_ADMIN, changes=True, fields=("user", "password", "mechanism"),
    ),
    Entry(
        "POST", "/users/remove", users.remove, "Remove a user",
        right=_ADMIN, changes=True, fields=("user", "confirm"),
    ),
    Entry("GET", "/quotas", quotas.show, "Quotas, as sentences", "quotas.html"),
    Entry(
        "POST", "/quotas", quotas.change, "Set a quota, or take it away",
        right=_ADMIN, changes=True, fields=("user", "client", "ip", "key", "value"),
    ),
)  # fmt: skip
