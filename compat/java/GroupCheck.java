import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Consumer groups: every assignor, static members, commits. */
final class GroupCheck {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final int PARTITIONS = 6;

    private GroupCheck() {
    }

    private static KafkaConsumer<byte[], byte[]> member(String bootstrap, String group, String... more) {
        String[] base = {"group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
            "session.timeout.ms", "10000", "heartbeat.interval.ms", "200"};
        List<String> pairs = new ArrayList<>(List.of(base));
        pairs.addAll(List.of(more));
        return RecordsCheck.consumer(bootstrap, pairs.toArray(new String[0]));
    }

    private static boolean shared(List<KafkaConsumer<byte[], byte[]>> members, Set<String> seen) {
        Set<TopicPartition> covered = new HashSet<>();
        int total = 0;
        int largest = 0;
        int smallest = PARTITIONS;
        for (KafkaConsumer<byte[], byte[]> member : members) {
            member.poll(POLL).forEach(record -> seen.add(record.partition() + ":" + record.offset()));
            covered.addAll(member.assignment());
            total += member.assignment().size();
            largest = Math.max(largest, member.assignment().size());
            smallest = Math.min(smallest, member.assignment().size());
        }
        return covered.size() == PARTITIONS && total == PARTITIONS && largest - smallest <= 1;
    }

    /** Three members come one after the other, share the partitions evenly, one leaves, everything is read. */
    static void assignor(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, PARTITIONS);
        String group = Check.unique("group");
        String strategy = "org.apache.kafka.clients.consumer." + arguments[0];
        Set<String> seen = new HashSet<>();
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (int count = 1; count <= 3; count++) {
                KafkaConsumer<byte[], byte[]> member = member(bootstrap, group, "partition.assignment.strategy", strategy);
                member.subscribe(List.of(topic));
                members.add(member);
                Check.waitUntil(count + " members share the partitions", () -> shared(members, seen));
                for (int i = 0; i < 60; i++) {
                    producer.send(new ProducerRecord<>(topic, i % PARTITIONS, null, RecordsCheck.bytes("" + i))).get();
                }
                int expected = count * 60;
                Check.waitUntil(expected + " records", () -> shared(members, seen) && seen.size() == expected);
            }
        }
        members.remove(0).close();
        Check.waitUntil("the two that stay share the partitions", () -> shared(members, seen));
        members.forEach(KafkaConsumer::close);
    }

    /** A static member that goes and comes back keeps its partitions, and the other one sees no rebalance. */
    static void staticMember(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, PARTITIONS);
        String group = Check.unique("group");
        Set<String> seen = new HashSet<>();
        KafkaConsumer<byte[], byte[]> stays = member(bootstrap, group, "group.instance.id", "stays");
        KafkaConsumer<byte[], byte[]> leaves = member(bootstrap, group, "group.instance.id", "leaves");
        stays.subscribe(List.of(topic));
        leaves.subscribe(List.of(topic));
        Check.waitUntil("both share the partitions", () -> shared(List.of(stays, leaves), seen));
        int generation = stays.groupMetadata().generationId();
        Set<TopicPartition> before = new HashSet<>(leaves.assignment());
        leaves.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP));
        KafkaConsumer<byte[], byte[]> returns = member(bootstrap, group, "group.instance.id", "leaves");
        returns.subscribe(List.of(topic));
        Check.waitUntil("it is back", () -> shared(List.of(stays, returns), seen));
        Check.expect(before, returns.assignment());
        Check.expect(generation, stays.groupMetadata().generationId());
        stays.close();
        returns.close();
    }

    static void commits(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        String group = Check.unique("group");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (int i = 0; i < 10; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, RecordsCheck.bytes("" + i))).get();
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = member(bootstrap, group)) {
            consumer.subscribe(List.of(topic));
            Check.waitUntil("assigned", () -> {
                consumer.poll(POLL);
                return !consumer.assignment().isEmpty();
            });
            // The client answers committed() from a fetch that is still under way since poll(), older than this commit.
            consumer.position(partition);
            consumer.commitSync(Map.of(partition, new OffsetAndMetadata(4, "four of ten")));
            OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
            Check.expect(4L, committed.offset());
            Check.expect("four of ten", committed.metadata());
        }
        try (KafkaConsumer<byte[], byte[]> consumer = member(bootstrap, group, "max.poll.records", "1")) {
            consumer.subscribe(List.of(topic));
            List<Long> offsets = new ArrayList<>();
            Check.waitUntil("the next record", () -> {
                consumer.poll(POLL).forEach(record -> offsets.add(record.offset()));
                return !offsets.isEmpty();
            });
            Check.expect(4L, offsets.get(0));
        }
    }
}
