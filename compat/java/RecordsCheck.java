import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What is produced comes back: codecs, headers, nulls, timestamps, large records. */
final class RecordsCheck {
    private RecordsCheck() {
    }

    static KafkaProducer<byte[], byte[]> producer(String bootstrap, String... pairs) {
        return new KafkaProducer<>(Check.settings(bootstrap, pairs), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(String bootstrap, String... pairs) {
        Properties settings = Check.settings(bootstrap, pairs);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static String newTopic(String bootstrap, int partitions) throws Exception {
        return newTopic(bootstrap, partitions, Map.of());
    }

    private static String newTopic(String bootstrap, int partitions, Map<String, String> settings) throws Exception {
        String topic = Check.unique("java");
        try (Admin admin = Admin.create(Check.settings(bootstrap))) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.empty()).configs(settings))).all().get();
        }
        return topic;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static List<ConsumerRecord<byte[], byte[]>> readAll(String bootstrap, String topic, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap)) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            Check.waitUntil(count + " records", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
                return records.size() >= count;
            });
        }
        return records;
    }

    /** An idempotent producer, which is the default, with the first codec named, into a topic that asks for the second. */
    static void codec(String bootstrap, String[] arguments) throws Exception {
        String topic = newTopic(bootstrap, 1, Map.of("compression.type", arguments[1]));
        int count = 2000;
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, "compression.type", arguments[0], "linger.ms", "5")) {
            for (int i = 0; i < count; i++) {
                byte[] key = i % 3 == 0 ? null : bytes("key " + i);
                byte[] value = i % 5 == 0 ? null : bytes(("value " + i + " ").repeat(20));
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, 1_600_000_000_000L + i, key, value);
                record.headers().add("number", bytes("" + i)).add("nothing", null);
                sent.add(producer.send(record));
            }
        }
        for (int i = 0; i < count; i++) {
            Check.expect((long) i, sent.get(i).get().offset());
        }
        List<ConsumerRecord<byte[], byte[]>> read = readAll(bootstrap, topic, count);
        Check.expect(count, read.size());
        for (int i = 0; i < count; i++) {
            ConsumerRecord<byte[], byte[]> record = read.get(i);
            Check.expect((long) i, record.offset());
            Check.expect(1_600_000_000_000L + i, record.timestamp());
            Check.expect(i % 3 == 0, record.key() == null);
            Check.expect(i % 5 == 0, record.value() == null);
            Check.expect(i % 5 == 0 || Arrays.equals(record.value(), bytes(("value " + i + " ").repeat(20))), "value " + i);
            Header[] headers = record.headers().toArray();
            Check.expect("" + i, new String(headers[0].value(), StandardCharsets.UTF_8));
            Check.expect(headers[1].value() == null, "a null header");
        }
    }

    static void times(String bootstrap, String[] arguments) throws Exception {
        String topic = newTopic(bootstrap, 1);
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap)) {
            for (int i = 0; i < 100; i++) {
                producer.send(new ProducerRecord<>(topic, 0, 1_000_000L + i * 1000, null, bytes("" + i))).get();
            }
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap)) {
            Check.expect(0L, consumer.beginningOffsets(List.of(partition)).get(partition));
            Check.expect(100L, consumer.endOffsets(List.of(partition)).get(partition));
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(Map.of(partition, 1_041_500L));
            Check.expect(42L, found.get(partition).offset());
            Check.expect(1_042_000L, found.get(partition).timestamp());
            Check.expect(consumer.offsetsForTimes(Map.of(partition, 9_000_000L)).get(partition) == null, "no such time");
            consumer.assign(Collections.singleton(partition));
            consumer.seek(partition, found.get(partition).offset());
            List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
            Check.waitUntil("records", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(records::add);
                return records.size() == 58;
            });
            Check.expect("42", new String(records.get(0).value(), StandardCharsets.UTF_8));
        }
    }

    /** A record larger than what a consumer asks for at once is still delivered; one above the limit is refused. */
    static void large(String bootstrap, String[] arguments) throws Exception {
        String topic = newTopic(bootstrap, 1);
        String[] limits = {"max.request.size", "5000000", "buffer.memory", "50000000"};
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, limits)) {
            producer.send(new ProducerRecord<>(topic, 0, null, new byte[1_000_000])).get();
            try {
                producer.send(new ProducerRecord<>(topic, 0, null, new byte[2_000_000])).get();
                throw new AssertionError("a record above max.message.bytes was taken");
            } catch (java.util.concurrent.ExecutionException refused) {
                Check.expect("RecordTooLargeException", refused.getCause().getClass().getSimpleName());
            }
            producer.send(new ProducerRecord<>(topic, 0, null, bytes("after"))).get();
        }
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(bootstrap, "max.partition.fetch.bytes", "1000", "fetch.max.bytes", "1000")) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            List<Integer> sizes = new ArrayList<>();
            Check.waitUntil("both records", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> sizes.add(record.value().length));
                return sizes.size() == 2;
            });
            Check.expect(List.of(1_000_000, 5), sizes);
        }
    }
}
