"""The one table of commands: what each is called by us, by Kafka's scripts and by Kafka's Java classes."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class CommandModule(Protocol):
    def main(self, argv: Sequence[str] | None = None, prog: str = ...) -> int:
        """Run the command with these arguments and return the exit code."""


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
    Command("up", "local.up", "start a broker for this laptop: data in ./.ottla, port 9092"),
    Command(
        "broker",
        "local.broker",
        "run a broker from server.properties and --set",
        "kafka-server-start",
        ("kafka.Kafka",),
    ),
    Command("server-stop", "local.server_stop", "stop the brokers on this machine", "kafka-server-stop"),
    Command("cluster", "local.cluster", "run a whole cluster on this machine: ZooKeeper and brokers"),
    Command(
        "registry",
        "local.registry",
        "run a schema registry for Avro, JSON Schema and Protobuf, with the REST API that serializers know",
        "schema-registry-start",
        ("io.confluent.kafka.schemaregistry.rest.SchemaRegistryMain",),
    ),
    Command(
        "console",
        "local.console",
        "serve a console for browsers: topics, messages, groups, pipelines, schemas, access",
    ),
    Command(
        "zookeeper",
        "local.zookeeper",
        "run a ZooKeeper server, where the brokers of a cluster keep their metadata",
        "zookeeper-server-start",
        ("org.apache.zookeeper.server.quorum.QuorumPeerMain",),
    ),
    Command(
        "zookeeper-stop", "local.zookeeper_stop", "stop the ZooKeeper servers on this machine", "zookeeper-server-stop"
    ),
    Command(
        "zookeeper-shell",
        "local.zookeeper_shell",
        "look into ZooKeeper and change it: ls, get, create, set, delete, stat",
        "zookeeper-shell",
        ("org.apache.zookeeper.ZooKeeperMainWithTlsSupportForKafka", "org.apache.zookeeper.ZooKeeperMain"),
    ),
    Command(
        "storage",
        "local.storage",
        "look at the log directories of a broker, and give them a cluster id",
        "kafka-storage",
        ("kafka.tools.StorageTool", "org.apache.kafka.tools.StorageTool"),
    ),
    Command(
        "cluster-info",
        "admin.cluster_info",
        "show a cluster's id and where its brokers listen",
        "kafka-cluster",
        ("org.apache.kafka.tools.ClusterTool", "kafka.tools.ClusterTool"),
    ),
    Command(
        "features",
        "admin.features",
        "show the versions of protocols that brokers have agreed on",
        "kafka-features",
        ("org.apache.kafka.tools.FeatureCommand", "kafka.admin.FeatureCommand"),
    ),
    Command(
        "delegation-tokens",
        "admin.delegation_tokens",
        "create, renew, expire and show delegation tokens",
        "kafka-delegation-tokens",
        ("org.apache.kafka.tools.DelegationTokenCommand", "kafka.admin.DelegationTokenCommand"),
    ),
    Command("users", "admin.users", "add, list and remove users who log in with SCRAM, and change passwords"),
    Command(
        "topics",
        "admin.topics",
        "create, list, describe, alter and delete topics",
        "kafka-topics",
        ("org.apache.kafka.tools.TopicCommand", "kafka.admin.TopicCommand"),
    ),
    Command(
        "configs",
        "admin.configs",
        "describe and alter settings of topics and brokers while they run",
        "kafka-configs",
        ("kafka.admin.ConfigCommand", "org.apache.kafka.tools.ConfigCommand"),
    ),
    Command(
        "acls",
        "admin.acls",
        "list, add and remove access control lists: who may do what",
        "kafka-acls",
        ("org.apache.kafka.tools.AclCommand", "kafka.admin.AclCommand"),
    ),
    Command(
        "consumer-groups",
        "admin.consumer_groups",
        "list groups, show their lag, reset and delete their offsets",
        "kafka-consumer-groups",
        ("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "kafka.admin.ConsumerGroupCommand"),
    ),
    Command(
        "groups",
        "admin.groups",
        "list groups of every type",
        "kafka-groups",
        ("org.apache.kafka.tools.GroupsCommand",),
    ),
    Command("schema", "admin.schema", "register, read, compare and delete schemas, and say what may follow what"),
    Command(
        "avro-console-consumer",
        "data.avro_console_consumer",
        "print records with Avro schemas as JSON",
        "kafka-avro-console-consumer",
    ),
    Command(
        "avro-console-producer",
        "data.avro_console_producer",
        "send lines of JSON with an Avro schema",
        "kafka-avro-console-producer",
    ),
    Command(
        "json-schema-console-consumer",
        "data.json_schema_console_consumer",
        "print records with JSON Schema schemas as JSON",
        "kafka-json-schema-console-consumer",
    ),
    Command(
        "json-schema-console-producer",
        "data.json_schema_console_producer",
        "send lines of JSON with a JSON Schema schema",
        "kafka-json-schema-console-producer",
    ),
    Command(
        "protobuf-console-consumer",
        "data.protobuf_console_consumer",
        "print records with Protobuf schemas as JSON",
        "kafka-protobuf-console-consumer",
    ),
    Command(
        "protobuf-console-producer",
        "data.protobuf_console_producer",
        "send lines of JSON with a Protobuf schema",
        "kafka-protobuf-console-producer",
    ),
    Command(
        "console-producer",
        "data.console_producer",
        "send lines from standard input to a topic",
        "kafka-console-producer",
        ("org.apache.kafka.tools.ConsoleProducer", "kafka.tools.ConsoleProducer"),
    ),
    Command(
        "console-consumer",
        "data.console_consumer",
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
        "data.producer_perf_test",
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
        "data.consumer_perf_test",
        "measure how fast records can be consumed",
        "kafka-consumer-perf-test",
        ("org.apache.kafka.tools.ConsumerPerformance", "kafka.tools.ConsumerPerformance"),
    ),
    Command(
        "e2e-latency",
        "data.e2e_latency",
        "measure the time from producing a record to consuming it",
        "kafka-e2e-latency",
        ("org.apache.kafka.tools.EndToEndLatency", "kafka.tools.EndToEndLatency", "kafka.tools.TestEndToEndLatency"),
    ),
    Command(
        "get-offsets",
        "admin.get_offsets",
        "print the offsets of partitions at a point in time",
        "kafka-get-offsets",
        ("org.apache.kafka.tools.GetOffsetShell", "kafka.tools.GetOffsetShell"),
    ),
    Command(
        "delete-records",
        "admin.delete_records",
        "drop the records of partitions below an offset",
        "kafka-delete-records",
        ("org.apache.kafka.tools.DeleteRecordsCommand", "kafka.admin.DeleteRecordsCommand"),
    ),
    Command(
        "reassign-partitions",
        "admin.reassign_partitions",
        "move partitions to other brokers or directories",
        "kafka-reassign-partitions",
        (
            "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
            "kafka.admin.ReassignPartitionsCommand",
        ),
    ),
    Command(
        "leader-election",
        "admin.leader_election",
        "elect the preferred leaders of partitions, or any that is left",
        "kafka-leader-election",
        ("org.apache.kafka.tools.LeaderElectionCommand", "kafka.admin.LeaderElectionCommand"),
    ),
    Command(
        "replica-verification",
        "admin.replica_verification",
        "read all copies of partitions and tell where they differ",
        "kafka-replica-verification",
        ("org.apache.kafka.tools.ReplicaVerificationTool", "kafka.tools.ReplicaVerificationTool"),
    ),
    Command(
        "log-dirs",
        "admin.log_dirs",
        "show how much disk the partitions of each broker use",
        "kafka-log-dirs",
        ("org.apache.kafka.tools.LogDirsCommand", "kafka.admin.LogDirsCommand"),
    ),
    Command(
        "transactions",
        "admin.transactions",
        "list and describe transactions, find those that hang, and end them",
        "kafka-transactions",
        ("org.apache.kafka.tools.TransactionsCommand",),
    ),
    Command(
        "dump-log",
        "dump.log",
        "read segment, index and snapshot files from disk and check them",
        "kafka-dump-log",
        ("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments"),
    ),
    Command(
        "broker-api-versions",
        "admin.broker_api_versions",
        "show which requests, in which versions, each broker serves",
        "kafka-broker-api-versions",
        ("org.apache.kafka.tools.BrokerApiVersionsCommand", "kafka.admin.BrokerApiVersionsCommand"),
    ),
    Command(
        "client-metrics",
        "admin.client_metrics",
        "say which clients push which of their metrics",
        "kafka-client-metrics",
        ("org.apache.kafka.tools.ClientMetricsCommand",),
    ),
    Command(
        "jmx",
        "admin.jmx",
        "print metrics of a broker by the names of their MBeans",
        "kafka-jmx",
        ("org.apache.kafka.tools.JmxTool", "kafka.tools.JmxTool"),
    ),
    Command(
        "verifiable-producer",
        "data.verifiable_producer",
        "produce counted records and report each as a line of JSON",
        "kafka-verifiable-producer",
        ("org.apache.kafka.tools.VerifiableProducer", "org.apache.kafka.clients.tools.VerifiableProducer"),
    ),
    Command(
        "verifiable-consumer",
        "data.verifiable_consumer",
        "consume and report what arrived as lines of JSON",
        "kafka-verifiable-consumer",
        ("org.apache.kafka.tools.VerifiableConsumer", "org.apache.kafka.clients.tools.VerifiableConsumer"),
    ),
    Command("sql", "pipeline.sql", "a quick look at topics with SQL, on Spark"),
    Command("monitor", "monitor.command", "judge consumers' lag and send records end to end; Burrow's API and metrics"),
    Command("top", "monitor.top", "a cluster at a glance: brokers, topics by traffic, groups by lag, requests by time"),
    Command("doctor", "local.doctor", "look at Java, Spark, ports, disk and clock, and say how to mend what is wrong"),
    Command(
        "pipeline", "pipeline.command", "data pipelines on Spark, from files: lint, plan, test, run, status, stop, ..."
    ),
    Command(
        "mirror",
        "pipeline.mirror",
        "mirror topics, settings and groups between clusters, on Spark; standbys: promote, failback",
    ),
    Command(
        "backup",
        "pipeline.backup",
        "take, list, verify, restore and prune backups of topics, groups and metadata; folders and S3",
    ),
    Command(
        "mirror-maker",
        "pipeline.mirror_maker",
        "mirror by the properties of MirrorMaker 2",
        "connect-mirror-maker",
        ("org.apache.kafka.connect.mirror.MirrorMaker",),
    ),
    Command(
        "old-mirror-maker",
        "pipeline.old_mirror_maker",
        "copy topics to another cluster under their names, by the flags of MirrorMaker 1",
        "kafka-mirror-maker",
        ("kafka.tools.MirrorMaker",),
    ),
    Command("run-class", "run_class", "run a tool by the name of Kafka's Java class", "kafka-run-class"),
)


class NotYet(NamedTuple):
    """A tool of Kafka's that there is none of here, so that nobody is sent to another one."""

    script: str
    classes: tuple[str, ...]
    instead: str


NOT_YET: tuple[NotYet, ...] = (
    NotYet(
        "kafka-metadata-quorum",
        ("org.apache.kafka.tools.MetadataQuorumCommand", "kafka.admin.MetadataQuorumCommand"),
        "there is no quorum of controllers: metadata is kept in SQLite or in ZooKeeper (zookeeper-shell shows it)",
    ),
    NotYet(
        "kafka-metadata-shell",
        ("org.apache.kafka.shell.MetadataShell",),
        "there is no metadata log: metadata is kept in SQLite or in ZooKeeper (zookeeper-shell shows it)",
    ),
    NotYet(
        "kafka-share-groups",
        ("org.apache.kafka.tools.consumer.group.ShareGroupCommand",),
        "share groups are not served yet",
    ),
    NotYet(
        "kafka-console-share-consumer",
        ("org.apache.kafka.tools.consumer.ConsoleShareConsumer",),
        "share groups are not served yet",
    ),
    NotYet(
        "kafka-share-consumer-perf-test",
        ("org.apache.kafka.tools.ShareConsumerPerformance",),
        "share groups are not served yet",
    ),
    NotYet(
        "kafka-verifiable-share-consumer",
        ("org.apache.kafka.tools.VerifiableShareConsumer",),
        "share groups are not served yet",
    ),
    NotYet(
        "kafka-streams-groups",
        ("org.apache.kafka.tools.streams.StreamsGroupCommand",),
        "groups of the streams protocol are not served",
    ),
    NotYet(
        "kafka-streams-application-reset",
        ("org.apache.kafka.tools.StreamsResetter", "kafka.tools.StreamsResetter"),
        "use consumer-groups --reset-offsets, and delete the application's internal topics with topics --delete",
    ),
    NotYet(
        "connect-standalone",
        ("org.apache.kafka.connect.cli.ConnectStandalone",),
        "Kafka Connect's files are not read yet; `ottla pipeline` moves data between systems",
    ),
    NotYet(
        "connect-distributed",
        ("org.apache.kafka.connect.cli.ConnectDistributed",),
        "Kafka Connect's files are not read yet; `ottla pipeline` moves data between systems",
    ),
    NotYet(
        "connect-plugin-path",
        ("org.apache.kafka.tools.ConnectPluginPath",),
        "plug-ins of Kafka Connect are classes of the JVM and cannot be loaded here",
    ),
    NotYet(
        "kafka-preferred-replica-election",
        ("kafka.admin.PreferredReplicaLeaderElectionCommand",),
        "use leader-election --election-type preferred --all-topic-partitions",
    ),
    NotYet("kafka-consumer-offset-checker", ("kafka.tools.ConsumerOffsetChecker",), "use consumer-groups --describe"),
    NotYet("kafka-simple-consumer-shell", ("kafka.tools.SimpleConsumerShell",), "use console-consumer --partition"),
    NotYet(
        "zookeeper-security-migration",
        ("kafka.admin.ZkSecurityMigrator",),
        "start the brokers with zookeeper.set.acl=true; what they write from then on is protected",
    ),
    NotYet(
        "kafka-log-compaction-tester",
        ("org.apache.kafka.tools.LogCompactionTester", "kafka.tools.LogCompactionTester"),
        "it is a test of Kafka's own and needs its JVM; its --bootstrap-server may name brokers of Ottla",
    ),
    NotYet("trogdor", ("org.apache.kafka.trogdor.agent.Agent",), "it is a test of Kafka's own and needs its JVM"),
)

BY_NAME = {command.name: command for command in COMMANDS}
BY_SCRIPT = {command.script: command for command in COMMANDS if command.script}
BY_CLASS = {java_class: command for command in COMMANDS for java_class in command.classes}
NOT_YET_BY_CLASS = {java_class: missing for missing in NOT_YET for java_class in missing.classes}
NOT_YET_BY_NAME = {
    name: missing for missing in NOT_YET for name in (missing.script, missing.script.removeprefix("kafka-"))
}

# Every executable but `ottla` itself is this one function, which looks at the name it was called by.
SCRIPT_ENTRY_POINT = "ottla.cli.main:run_by_name"


def script_names() -> list[str]:
    """The executables that the package installs under Kafka's names."""
    return sorted(name for script in BY_SCRIPT for name in (script, f"{script}.sh"))
