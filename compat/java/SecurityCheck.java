import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A client with a file of settings: does everything, or is not let in by any of its parts. */
final class SecurityCheck {
    private SecurityCheck() {
    }

    private static Properties read(String file, String bootstrap) throws Exception {
        Properties found = new Properties();
        try (FileReader reader = new FileReader(file)) {
            found.load(reader);
        }
        found.put("bootstrap.servers", bootstrap);
        return found;
    }

    /** Administration, a transaction, a group. */
    static void letIn(String bootstrap, String[] arguments) throws Exception {
        Properties settings = read(arguments[0], bootstrap);
        String topic = Check.unique("secured");
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, Optional.of(1), Optional.empty()))).all().get();
            Check.expect(1, admin.describeCluster().nodes().get().size());
        }
        Properties producing = new Properties();
        producing.putAll(settings);
        producing.put("transactional.id", topic);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            for (int i = 0; i < 100; i++) {
                producer.send(new ProducerRecord<>(topic, 0, null, "record " + i));
            }
            producer.commitTransaction();
        }
        Properties consuming = new Properties();
        consuming.putAll(settings);
        consuming.putAll(Map.of("group.id", topic, "auto.offset.reset", "earliest", "isolation.level", "read_committed"));
        List<String> read = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            Check.waitUntil("100 records", () -> {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> read.add(record.value()));
                return read.size() >= 100;
            });
            consumer.commitSync();
        }
        Check.expect(100, read.size());
        Check.expect("record 99", read.get(99));
    }

    /** With the name of the exception that says so: administration, producer and consumer each meet it. */
    static void refused(String bootstrap, String[] arguments) throws Exception {
        Properties settings = read(arguments[0], bootstrap);
        try (Admin admin = Admin.create(settings)) {
            admin.listTopics().names().get();
            throw new AssertionError("the broker told its topics");
        } catch (ExecutionException refusal) {
            expectRefusal(arguments[1], refusal.getCause());
        }
        settings.put("max.block.ms", "" + Check.WAIT_MS);
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.send(new ProducerRecord<>("anything", "x")).get();
            throw new AssertionError("the broker took a record");
        } catch (ExecutionException refusal) {
            expectRefusal(arguments[1], refusal.getCause());
        }
        settings.put("group.id", "anything");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.partitionsFor("anything");
            throw new AssertionError("the broker told the consumer something");
        } catch (AuthenticationException refusal) {
            expectRefusal(arguments[1], refusal);
        }
    }

    private static void expectRefusal(String expected, Throwable found) {
        Check.expect(found instanceof AuthenticationException, "an AuthenticationException, not " + found);
        Check.expect(expected, found.getClass().getSimpleName());
    }
}
