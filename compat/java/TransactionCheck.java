import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions: what is seen when, positions in them, zombies, timeouts, and what the admin client tells of them. */
final class TransactionCheck {
    private static final Duration POLL = Duration.ofMillis(100);

    private TransactionCheck() {
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String id, String... more) {
        List<String> pairs = new ArrayList<>(List.of("transactional.id", id));
        pairs.addAll(List.of(more));
        KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap, pairs.toArray(new String[0]));
        producer.initTransactions();
        return producer;
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, String... values) throws Exception {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, 0, null, RecordsCheck.bytes(value)));
        }
        producer.flush();
    }

    private static String text(ConsumerRecord<byte[], byte[]> record) {
        return new String(record.value(), StandardCharsets.UTF_8);
    }

    /** All that one may see of partition 0 at this moment. */
    private static List<String> read(String bootstrap, String topic, String isolation) {
        TopicPartition partition = new TopicPartition(topic, 0);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, "isolation.level", isolation)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            Check.waitUntil("the end of " + topic, () -> {
                consumer.poll(POLL).forEach(record -> values.add(text(record)));
                return consumer.position(partition) >= end;
            });
        }
        return values;
    }

    private static void waitUntilCommitted(String bootstrap, String topic, String... values) {
        Check.waitUntil("committed: " + List.of(values),
            () -> read(bootstrap, topic, "read_committed").equals(List.of(values)));
    }

    static void isolation(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, Check.unique("id"))) {
            producer.beginTransaction();
            send(producer, topic, "1", "2");
            Check.expect(List.of(), read(bootstrap, topic, "read_committed"));
            Check.expect(List.of("1", "2"), read(bootstrap, topic, "read_uncommitted"));
            producer.commitTransaction();
            waitUntilCommitted(bootstrap, topic, "1", "2");
            for (int i = 0; i < 5; i++) {
                producer.beginTransaction();
                send(producer, topic, "aborted " + i);
                producer.abortTransaction();
                producer.beginTransaction();
                send(producer, topic, "committed " + i);
                producer.commitTransaction();
            }
        }
        waitUntilCommitted(bootstrap, topic, "1", "2", "committed 0", "committed 1", "committed 2", "committed 3",
            "committed 4");
        Check.expect(12, read(bootstrap, topic, "read_uncommitted").size());
    }

    /** Consume, transform, produce: half of the attempts are aborted, and still everything is copied once. */
    static void copy(String bootstrap, String[] arguments) throws Exception {
        String input = RecordsCheck.newTopic(bootstrap, 1);
        String output = RecordsCheck.newTopic(bootstrap, 1);
        List<String> expected = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap)) {
            for (int i = 0; i < 200; i++) {
                producer.send(new ProducerRecord<>(input, 0, null, RecordsCheck.bytes("" + i)));
                expected.add("copy of " + i);
            }
        }
        String[] settings = {"group.id", Check.unique("group"), "auto.offset.reset", "earliest", "enable.auto.commit",
            "false", "isolation.level", "read_committed", "max.poll.records", "20", "group.protocol", arguments[0]};
        TopicPartition partition = new TopicPartition(input, 0);
        int attempts = 0;
        int copied = 0;
        try (KafkaProducer<byte[], byte[]> producer = producer(bootstrap, Check.unique("id"));
                KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, settings)) {
            consumer.subscribe(List.of(input));
            while (copied < 200) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                records.forEach(record ->
                    producer.send(new ProducerRecord<>(output, 0, null, RecordsCheck.bytes("copy of " + text(record)))));
                producer.sendOffsetsToTransaction(records.nextOffsets(), consumer.groupMetadata());
                if (attempts++ % 2 == 0) {
                    producer.abortTransaction();
                    OffsetAndMetadata committed = consumer.committed(Set.of(partition)).get(partition);
                    consumer.seek(partition, committed == null ? 0 : committed.offset());
                    Check.expect((long) copied, committed == null ? 0L : committed.offset());
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
        }
        waitUntilCommitted(bootstrap, output, expected.toArray(new String[0]));
    }

    static void fencing(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        String id = Check.unique("id");
        KafkaProducer<byte[], byte[]> zombie = producer(bootstrap, id);
        zombie.beginTransaction();
        send(zombie, topic, "zombie");
        try (KafkaProducer<byte[], byte[]> successor = producer(bootstrap, id)) {
            successor.beginTransaction();
            send(successor, topic, "successor");
            try {
                zombie.commitTransaction();
                throw new AssertionError("the zombie was let through");
            } catch (ProducerFencedException expected) {
                zombie.close(Duration.ZERO);
            }
            successor.commitTransaction();
        }
        waitUntilCommitted(bootstrap, topic, "successor");
    }

    static void timeout(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        KafkaProducer<byte[], byte[]> slow = producer(bootstrap, Check.unique("id"), "transaction.timeout.ms", "1000",
            "request.timeout.ms", "500", "delivery.timeout.ms", "900", "linger.ms", "0");
        slow.beginTransaction();
        send(slow, topic, "slow");
        try (KafkaProducer<byte[], byte[]> plain = RecordsCheck.producer(bootstrap)) {
            plain.send(new ProducerRecord<>(topic, 0, null, RecordsCheck.bytes("plain"))).get();
        }
        waitUntilCommitted(bootstrap, topic, "plain");
        try {
            slow.commitTransaction();
            throw new AssertionError("a commit after the timeout was let through");
        } catch (KafkaException expected) {
            slow.close(Duration.ZERO);
        }
        waitUntilCommitted(bootstrap, topic, "plain");
    }

    /** What the admin client tells of an open transaction, and that it can end it. */
    static void admin(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        String id = Check.unique("id");
        TopicPartition partition = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(Check.settings(bootstrap));
                KafkaProducer<byte[], byte[]> producer = producer(bootstrap, id)) {
            producer.beginTransaction();
            send(producer, topic, "open");
            ListTransactionsOptions open = new ListTransactionsOptions().filterStates(Set.of(TransactionState.ONGOING));
            Check.expect(true, admin.listTransactions(open).all().get().stream()
                .anyMatch(listing -> listing.transactionalId().equals(id)));
            TransactionDescription described = admin.describeTransactions(Set.of(id)).description(id).get();
            Check.expect(TransactionState.ONGOING, described.state());
            Check.expect(Set.of(partition), described.topicPartitions());
            List<ProducerState> active = admin.describeProducers(Set.of(partition)).partitionResult(partition).get()
                .activeProducers();
            Check.expect(1, active.size());
            Check.expect(described.producerId(), active.get(0).producerId());
            Check.expect(0L, active.get(0).currentTransactionStartOffset().getAsLong());
            admin.fenceProducers(Set.of(id)).all().get();
            Check.waitUntil("the transaction is ended", () -> {
                try {
                    // Fencing aborts what was open, then starts anew.
                    return Set.of(TransactionState.COMPLETE_ABORT, TransactionState.EMPTY).contains(
                        admin.describeTransactions(Set.of(id)).description(id).get().state());
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            });
            Check.expect(List.of(), read(bootstrap, topic, "read_committed"));
            producer.close(Duration.ZERO);
        }
    }
}
