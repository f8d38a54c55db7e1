import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.ConfigResource;

/** The admin client: topics, settings, offsets, log directories, groups. */
final class AdminCheck {
    private AdminCheck() {
    }

    static void run(String bootstrap, String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Check.settings(bootstrap))) {
            Check.expect(bootstrap.split(",").length, admin.describeCluster().nodes().get().size());
            String topic = Check.unique("admin");
            NewTopic wanted = new NewTopic(topic, 3, (short) 1).configs(Map.of("retention.ms", "60000"));
            Uuid id = admin.createTopics(List.of(wanted)).topicId(topic).get();
            refused("TopicExistsException", () -> admin.createTopics(List.of(wanted)).all().get());
            Check.expect(admin.listTopics().names().get().contains(topic), "the topic is listed");
            TopicDescription described = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
            Check.expect(id, described.topicId());
            Check.expect(3, described.partitions().size());
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
            Check.expect(5, admin.describeTopics(TopicCollection.ofTopicIds(List.of(id))).allTopicIds().get().get(id)
                .partitions().size());
            settings(admin, topic);
            offsets(admin, bootstrap, topic);
            admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
            refused("UnknownTopicOrPartitionException", () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
        }
    }

    private interface Action {
        void run() throws Exception;
    }

    private static void refused(String reason, Action action) throws Exception {
        try {
            action.run();
        } catch (ExecutionException failure) {
            Check.expect(reason, failure.getCause().getClass().getSimpleName());
            return;
        }
        throw new AssertionError("this should have ended with " + reason);
    }

    private static void settings(Admin admin, String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config before = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Check.expect("60000", before.get("retention.ms").value());
        Check.expect(ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG, before.get("retention.ms").source());
        Check.expect(ConfigEntry.ConfigSource.DEFAULT_CONFIG, before.get("max.message.bytes").source());
        Check.expect(ConfigEntry.ConfigType.INT, before.get("max.message.bytes").type());
        Collection<AlterConfigOp> changes = List.of(
            new AlterConfigOp(new ConfigEntry("max.message.bytes", "2000000"), AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("retention.ms", ""), AlterConfigOp.OpType.DELETE));
        admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
        Config after = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Check.expect("2000000", after.get("max.message.bytes").value());
        Check.expect("604800000", after.get("retention.ms").value());
        Collection<AlterConfigOp> wrong = List.of(
            new AlterConfigOp(new ConfigEntry("max.message.bytes", "many"), AlterConfigOp.OpType.SET));
        refused("InvalidConfigurationException", () -> admin.incrementalAlterConfigs(Map.of(resource, wrong)).all().get());
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        Config ofBroker = admin.describeConfigs(List.of(broker)).all().get().get(broker);
        Check.expect("1073741824", ofBroker.get("log.segment.bytes").value());
        Check.expect(admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new org.apache.kafka.clients.admin
            .ListConfigResourcesOptions()).all().get().contains(resource), "the topic is among the config resources");
    }

    private static void offsets(Admin admin, String bootstrap, String topic) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>(topic, 0, 5000L - i, null, RecordsCheck.bytes("" + i))).get();
            }
        }
        Check.expect(10L, offset(admin, partition, OffsetSpec.latest()));
        Check.expect(0L, offset(admin, partition, OffsetSpec.earliest()));
        Check.expect(0L, offset(admin, partition, OffsetSpec.maxTimestamp()));
        Check.expect(0L, offset(admin, partition, OffsetSpec.forTimestamp(4999)));
        Check.expect(3L, admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(3))).lowWatermarks()
            .get(partition).get().lowWatermark());
        Check.expect(3L, offset(admin, partition, OffsetSpec.earliest()));
        int leader = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().get(0).leader().id();
        Map<String, LogDirDescription> dirs = admin.describeLogDirs(List.of(leader)).allDescriptions().get().get(leader);
        Check.expect(dirs.values().stream().anyMatch(dir -> dir.replicaInfos().containsKey(partition)
            && dir.replicaInfos().get(partition).size() > 0 && dir.totalBytes().isPresent()), "the partition's size");
    }

    private static long offset(Admin admin, TopicPartition partition, OffsetSpec spec) throws Exception {
        ListOffsetsResult.ListOffsetsResultInfo found = admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        return found.offset();
    }

    static void groups(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        String group = Check.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(Check.settings(bootstrap))) {
            KafkaConsumer<byte[], byte[]> member = RecordsCheck.consumer(bootstrap, "group.id", group, "client.id", "me");
            member.subscribe(List.of(topic));
            Check.waitUntil("assigned", () -> {
                member.poll(java.time.Duration.ofMillis(50));
                return !member.assignment().isEmpty();
            });
            ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            Check.expect(GroupState.STABLE, described.groupState());
            Check.expect("range", described.partitionAssignor());
            Check.expect(1, described.members().size());
            Check.expect("me", described.members().iterator().next().clientId());
            Check.expect(Set.of(partition), described.members().iterator().next().assignment().topicPartitions());
            refused("GroupNotEmptyException", () -> admin.deleteConsumerGroups(List.of(group)).all().get());
            member.close();
            Check.expect(admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group)), "listed");
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(7))).all().get();
            Check.expect(7L, admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().get(partition).offset());
            admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all().get();
            Check.expect(0, admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().size());
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(1))).all().get();
            admin.deleteConsumerGroups(List.of(group)).all().get();
            refused("GroupIdNotFoundException", () -> admin.describeConsumerGroups(List.of(group)).all().get());
        }
    }
}
