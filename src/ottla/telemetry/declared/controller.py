"""The controller: elections, and how quickly it comes to them."""

from ottla.telemetry.declaring import gauge, histogram, meter

_CONTROLLER = "kafka.controller:type=KafkaController,name="
_STATS = "kafka.controller:type=ControllerStats,name="
_EVENTS = "kafka.controller:type=ControllerEventManager,name="

FENCED_BROKERS = gauge(
    _CONTROLLER + "FencedBrokerCount",
    "brokers",
    "Brokers that hold replicas and are not registered, as the controller knows; 0 elsewhere.",
)
NEW_CONTROLLERS = gauge(
    _CONTROLLER + "NewActiveControllersCount", "times", "How often this broker has become the controller."
)
METADATA_ERRORS = gauge(
    _CONTROLLER + "MetadataErrorCount",
    "errors",
    "How often this broker could not write decisions as the controller, or failed to take them.",
)
UNCLEAN_ELECTIONS = meter(
    _STATS + "UncleanLeaderElectionsPerSec",
    "elections",
    "Leaders that were not in sync: records may be lost. Counted by the controller.",
)
ELECTIONS = histogram(
    _STATS + "LeaderElectionRateAndTimeMs",
    "milliseconds",
    "How long it took to decide and write leaders, from the news that made it necessary.",
)
QUEUE_TIME = histogram(
    _EVENTS + "EventQueueTimeMs",
    "milliseconds",
    "How long the news of a change waited until the controller looked at it.",
)
PROCESSING_TIME = histogram(
    _EVENTS + "EventQueueProcessingTimeMs", "milliseconds", "How long the controller worked on what had changed."
)
