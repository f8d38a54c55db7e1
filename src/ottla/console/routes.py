"""The one table of what is served: below `/c/CLUSTER` as pages, below `/api/c/CLUSTER` as JSON."""

from ottla.console.app import Entry
from ottla.console.asking import Right
from ottla.console.pages import brokers, events, groups, overview, topic_changes, topics

_OPERATOR, _ADMIN = Right.OPERATOR, Right.ADMIN
_LIST = ("q", "sort", "page", "per_page")

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
)  # fmt: skip
