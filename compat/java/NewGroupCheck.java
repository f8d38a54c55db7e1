import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Groups on the new protocol (group.protocol=consumer): joining, leaving, load, and the way there from the old one. */
final class NewGroupCheck {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final int PARTITIONS = 6;

    private NewGroupCheck() {
    }

    private static KafkaConsumer<byte[], byte[]> member(String bootstrap, String group, String protocol, String... more) {
        List<String> pairs = new ArrayList<>(List.of("group.id", group, "group.protocol", protocol,
            "auto.offset.reset", "earliest", "enable.auto.commit", "true", "auto.commit.interval.ms", "100"));
        if (protocol.equals("classic")) {
            pairs.addAll(List.of("session.timeout.ms", "10000", "heartbeat.interval.ms", "200"));
        }
        pairs.addAll(List.of(more));
        return RecordsCheck.consumer(bootstrap, pairs.toArray(new String[0]));
    }

    private static boolean shared(List<KafkaConsumer<byte[], byte[]>> members, Map<String, Integer> seen) {
        Set<TopicPartition> covered = new HashSet<>();
        int total = 0;
        int largest = 0;
        int smallest = PARTITIONS;
        for (KafkaConsumer<byte[], byte[]> member : members) {
            member.poll(POLL).forEach(record -> seen.merge(record.partition() + ":" + record.offset(), 1, Integer::sum));
            covered.addAll(member.assignment());
            total += member.assignment().size();
            largest = Math.max(largest, member.assignment().size());
            smallest = Math.min(smallest, member.assignment().size());
        }
        return covered.size() == PARTITIONS && total == PARTITIONS && largest - smallest <= 1;
    }

    /** Members come and go in order while records flow: every record is read, and none twice. */
    static void membership(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, PARTITIONS);
        String group = Check.unique("group");
        Map<String, Integer> seen = new HashMap<>();
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        int sent = 0;
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (int count = 1; count <= 3; count++) {
                KafkaConsumer<byte[], byte[]> member = member(bootstrap, group, "consumer",
                    "group.remote.assignor", arguments[0]);
                member.subscribe(List.of(topic));
                members.add(member);
                sent = send(producer, topic, sent);
                Check.waitUntil(count + " members share the partitions", () -> shared(members, seen));
            }
            members.remove(0).close();
            sent = send(producer, topic, sent);
            int expected = sent;
            Check.waitUntil("the two that stay read all", () -> shared(members, seen) && seen.size() == expected);
        }
        Check.expect(true, seen.values().stream().allMatch(count -> count == 1));
        members.forEach(KafkaConsumer::close);
    }

    private static int send(KafkaProducer<byte[], byte[]> producer, String topic, int sent) {
        for (int i = 0; i < 300; i++) {
            producer.send(new ProducerRecord<>(topic, i % PARTITIONS, null, RecordsCheck.bytes("" + i)));
        }
        producer.flush();
        return sent + 300;
    }

    /** A pattern that the broker evaluates; topics that appear later are found too. */
    static void pattern(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, PARTITIONS);
        Map<String, Integer> seen = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> member = member(bootstrap, Check.unique("group"), "consumer")) {
            member.subscribe(new SubscriptionPattern(topic.substring(0, topic.length() - 1) + "[0-9a-f]"));
            Check.waitUntil("the topic is found", () -> shared(List.of(member), seen));
        }
    }

    /** Members of the old protocol are replaced one by one by members of the new one, and back again. */
    static void upgrade(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, PARTITIONS);
        String group = Check.unique("group");
        Map<String, Integer> seen = new HashMap<>();
        List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
        int sent = 0;
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (String protocol : List.of("classic", "classic", "consumer", "consumer", "classic", "classic")) {
                if (members.size() == 2) {
                    members.remove(0).close();
                }
                KafkaConsumer<byte[], byte[]> member = member(bootstrap, group, protocol);
                member.subscribe(List.of(topic));
                members.add(member);
                sent = send(producer, topic, sent);
                int expected = sent;
                Check.waitUntil("after a member of protocol " + protocol,
                    () -> shared(members, seen) && seen.size() == expected);
            }
        }
        members.forEach(KafkaConsumer::close);
    }
}
