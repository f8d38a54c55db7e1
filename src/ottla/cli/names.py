"""The one table of commands: what each is called by us, by Kafka's scripts and by Kafka's Java classes."""

from typing import NamedTuple


class Command(NamedTuple):
    """One command line tool. Its module, `ottla.cli.<module>`, has `main(argv, prog) -> int`."""

    name: str
    module: str
    help: str
    script: str | None = None
    """Kafka's name for it, installed with and without `.sh`."""
    classes: tuple[str, ...] = ()
    """Java classes that `kafka-run-class.sh` runs for it, newest spelling first."""


COMMANDS: tuple[Command, ...] = (
    Command("up", "up", "start a broker for this laptop: data in ./.ottla, port 9092"),
    Command(
        "broker",
        "broker",
        "run a broker in the foreground from server.properties and --set",
        "kafka-server-start",
        ("kafka.Kafka",),
    ),
    Command("cluster", "cluster", "run a whole cluster on this machine: ZooKeeper and brokers"),
    Command(
        "zookeeper",
        "zookeeper",
        "run a ZooKeeper server, where the brokers of a cluster keep their metadata",
        "zookeeper-server-start",
        ("org.apache.zookeeper.server.quorum.QuorumPeerMain",),
    ),
    Command(
        "topics",
        "topics",
        "create, list, describe, alter and delete topics",
        "kafka-topics",
        ("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"),
    ),
    Command(
        "configs",
        "configs",
        "describe and alter settings of topics and brokers while they run",
        "kafka-configs",
        ("kafka.admin.ConfigCommand", "org.apache.kafka.tools.ConfigCommand"),
    ),
    Command(
        "consumer-groups",
        "consumer_groups",
        "list groups, show their lag, reset and delete their offsets",
        "kafka-consumer-groups",
        ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "kafka.admin.ConsumerGroupCommand"),
    ),
    Command(
        "groups",
        "groups",
        "list groups of every type",
        "kafka-groups",
        ("org.apache.kafka.tools.GroupsCommand",),
    ),
    Command(
        "console-producer",
        "console_producer",
        "send lines from standard input to a topic",
        "kafka-console-producer",
        ("org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"),
    ),
    Command(
        "console-consumer",
        "console_consumer",
        "print the records of a topic",
        "kafka-console-consumer",
        (
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            "org.apache.kafka.tools.ConsoleConsumer",
            "kafka.tools.ConsoleConsumer",
        ),
    ),
    Command(
        "producer-perf-test",
        "producer_perf_test",
        "measure how fast records can be produced",
        "kafka-producer-perf-test",
        (
            "org.apache.kafka.tools.ProducerPerformance",
            "org.apache.kafka.clients.tools.ProducerPerformance",
            "kafka.tools.ProducerPerformance",
        ),
    ),
    Command(
        "consumer-perf-test",
        "consumer_perf_test",
        "measure how fast records can be consumed",
        "kafka-consumer-perf-test",
        ("org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"),
    ),
    Command(
        "e2e-latency",
        "e2e_latency",
        "measure the time from producing a record to consuming it",
        "kafka-e2e-latency",
        ("org.apache.kafka.tools.EndToEndLatency", "kafka.tools.EndToEndLatency", "kafka.tools.TestEndToEndLatency"),
    ),
    Command(
        "get-offsets",
        "get_offsets",
        "print the offsets of partitions at a point in time",
        "kafka-get-offsets",
        ("org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"),
    ),
    Command(
        "delete-records",
        "delete_records",
        "drop the records of partitions below an offset",
        "kafka-delete-records",
        ("org.apache.kafka.tools.DeleteRecordsCommand", "kafka.admin.DeleteRecordsCommand"),
    ),
    Command(
        "reassign-partitions",
        "reassign_partitions",
        "move partitions to other brokers or directories",
        "kafka-reassign-partitions",
        (
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "kafka.admin.ReassignPartitionsCommand",
        ),
    ),
    Command(
        "leader-election",
        "leader_election",
        "elect the preferred leaders of partitions, or any that is left",
        "kafka-leader-election",
        ("org.apache.kafka.tools.LeaderElectionCommand", "kafka.admin.LeaderElectionCommand"),
    ),
    Command(
        "replica-verification",
        "replica_verification",
        "read all copies of partitions and tell where they differ",
        "kafka-replica-verification",
        ("org.apache.kafka.tools.ReplicaVerificationTool", "kafka.tools.ReplicaVerificationTool"),
    ),
    Command(
        "log-dirs",
        "log_dirs",
        "show how much disk the partitions of each broker use",
        "kafka-log-dirs",
        ("org.apache.kafka.tools.LogDirsCommand", "kafka.admin.LogDirsCommand"),
    ),
    Command(
        "transactions",
        "transactions",
        "list and describe transactions, find those that hang, and end them",
        "kafka-transactions",
        ("org.apache.kafka.tools.TransactionsCommand",),
    ),
    Command(
        "dump-log",
        "dump_log",
        "read segment, index and snapshot files from disk and check them",
        "kafka-dump-log",
        ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    ),
    Command(
        "broker-api-versions",
        "broker_api_versions",
        "show which requests, in which versions, each broker serves",
        "kafka-broker-api-versions",
        ("org.apache.kafka.tools.BrokerApiVersionsCommand", "kafka.admin.BrokerApiVersionsCommand"),
    ),
    Command(
        "verifiable-producer",
        "verifiable_producer",
        "produce counted records and report each as a line of JSON",
        "kafka-verifiable-producer",
        ("org.apache.kafka.tools.VerifiableProducer", "org.apache.kafka.clients.tools.VerifiableProducer"),
    ),
    Command(
        "verifiable-consumer",
        "verifiable_consumer",
        "consume and report what arrived as lines of JSON",
        "kafka-verifiable-consumer",
        ("org.apache.kafka.tools.VerifiableConsumer", "org.apache.kafka.clients.tools.VerifiableConsumer"),
    ),
    Command("sql", "sql", "a quick look at topics with SQL, on Spark"),
    Command("doctor", "doctor", "look at Java, Spark, ports, disk and clock, and say how to mend what is wrong"),
    Command("pipeline", "pipeline", "data pipelines on Spark, from files: lint, plan, test, run, status, stop, ..."),
    Command("run-class", "run_class", "run a tool by the name of Kafka's Java class", "kafka-run-class"),
)

BY_NAME = {command.name: command for command in COMMANDS}
BY_SCRIPT = {command.script: command for command in COMMANDS if command.script}
BY_CLASS = {java_class: command for command in COMMANDS for java_class in command.classes}

# Every executable but `ottla` itself is this one function, which looks at the name it was called by.
SCRIPT_ENTRY_POINT = "ottla.cli.main:run_by_name"


def script_names() -> list[str]:
    """The executables that the package installs under Kafka's names."""
    return sorted(name for script in BY_SCRIPT for name in (script, f"{script}.sh"))
