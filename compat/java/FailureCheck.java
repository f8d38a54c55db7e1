import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;

/**
 * An idempotent producer, a transactional one and a group of consumers, while brokers are killed by whoever started this.
 * Says how many records are acknowledged as it goes; told to stop by the end of its input, it compares what is in the
 * topics with what was promised.
 */
final class FailureCheck {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final int PARTITIONS = 3;
    private static final int TOLD_EVERY = 200;
    private static final int IN_A_TRANSACTION = 10;
    private static final String[] PATIENT = {"delivery.timeout.ms", "180000", "request.timeout.ms", "5000",
        "max.block.ms", "120000", "linger.ms", "2", "acks", "all"};

    private final String bootstrap;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final Map<Integer, Long> acknowledged = new ConcurrentHashMap<>();
    private final Map<String, String> consumed = new ConcurrentHashMap<>();
    private final Set<Integer> committed = ConcurrentHashMap.newKeySet();
    private volatile boolean producing = true;
    private volatile boolean consuming = true;

    private FailureCheck(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    private interface Work {
        void run() throws Exception;
    }

    static void run(String bootstrap, String[] arguments) throws Exception {
        new FailureCheck(bootstrap).whole(arguments[0], arguments[1]);
    }

    private void whole(String topic, String transactions) throws Exception {
        List<Thread> producers = List.of(thread(() -> produce(topic)), thread(() -> transact(transactions)));
        List<Thread> consumers = List.of(thread(() -> consume(topic)), thread(() -> consume(topic)));
        while (System.in.read() >= 0) {
            continue;
        }
        producing = false;
        join(producers);
        Map<Integer, List<String>> found = read(topic, "read_uncommitted");
        checkAcknowledged(found);
        int total = found.values().stream().mapToInt(List::size).sum();
        Check.waitUntil("the group has read " + total + " records", () -> {
            LockSupport.parkNanos(10_000_000);
            return failure.get() != null || consumed.size() >= total;
        });
        consuming = false;
        join(consumers);
        checkTransactions(read(transactions, "read_committed").get(0));
        System.out.println(acknowledged.size() + " acknowledged, " + committed.size() + " transactions");
    }

    private Thread thread(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Throwable error) {
                failure.compareAndSet(null, error);
            }
        });
        thread.start();
        return thread;
    }

    private void join(Collection<Thread> threads) throws Exception {
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("a client failed", failure.get());
        }
    }

    private void produce(String topic) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap, PATIENT)) {
            for (int i = 0; producing; i++) {
                int number = i;
                producer.send(new ProducerRecord<>(topic, i % PARTITIONS, null, RecordsCheck.bytes("" + i)), (sent, error) -> {
                    if (error != null) {
                        failure.compareAndSet(null, error);
                    } else {
                        acknowledged.put(number, sent.offset());
                        if (acknowledged.size() % TOLD_EVERY == 0) {
                            System.out.println("acknowledged " + acknowledged.size());
                        }
                    }
                });
                LockSupport.parkNanos(2_000_000);
            }
        }
    }

    /** Every third transaction is aborted; one that could not be ended in time is ended again, as the client asks for. */
    private void transact(String topic) throws Exception {
        List<String> settings = new ArrayList<>(List.of(PATIENT));
        settings.addAll(List.of("transactional.id", Check.unique("failures")));
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap, settings.toArray(new String[0]))) {
            ended(producer::initTransactions);
            for (int number = 0; producing; number++) {
                producer.beginTransaction();
                for (int i = 0; i < IN_A_TRANSACTION; i++) {
                    producer.send(new ProducerRecord<>(topic, 0, null, RecordsCheck.bytes(number + ":" + i)));
                }
                if (number % 3 == 2) {
                    ended(producer::abortTransaction);
                } else {
                    ended(producer::commitTransaction);
                    committed.add(number);
                }
                LockSupport.parkNanos(20_000_000);
            }
        }
    }

    private void ended(Runnable ending) {
        while (true) {
            try {
                ending.run();
                return;
            } catch (ProducerFencedException error) {
                throw error;
            } catch (TimeoutException error) {
                LockSupport.parkNanos(50_000_000);
            }
        }
    }

    private void consume(String topic) {
        String[] settings = {"group.id", "readers-of-" + topic, "auto.offset.reset", "earliest",
            "auto.commit.interval.ms", "300", "session.timeout.ms", "10000", "heartbeat.interval.ms", "500"};
        try (KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, settings)) {
            consumer.subscribe(List.of(topic));
            while (consuming) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    String before = consumed.put(record.partition() + ":" + record.offset(), text(record));
                    Check.expect(before == null || before.equals(text(record)), "an offset has one record for ever");
                }
            }
        }
    }

    private static String text(ConsumerRecord<byte[], byte[]> record) {
        return new String(record.value(), StandardCharsets.UTF_8);
    }

    private Map<Integer, List<String>> read(String topic, String isolation) {
        Map<Integer, List<String>> values = new HashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, "isolation.level", isolation)) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(topic).forEach(info -> partitions.add(new TopicPartition(topic, info.partition())));
            partitions.forEach(partition -> values.put(partition.partition(), new ArrayList<>()));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Check.waitUntil("the end of " + topic, () -> {
                consumer.poll(POLL).forEach(record -> values.get(record.partition()).add(text(record)));
                return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
            });
        }
        return values;
    }

    private void checkAcknowledged(Map<Integer, List<String>> found) {
        Set<Integer> seen = new HashSet<>();
        found.forEach((partition, values) -> {
            int last = -1;
            for (String value : values) {
                int number = Integer.parseInt(value);
                Check.expect(number > last, "in partition " + partition + " " + number + " comes after " + last);
                last = number;
                seen.add(number);
            }
        });
        Check.expect(seen.containsAll(acknowledged.keySet()), "everything that was acknowledged is there");
        acknowledged.forEach((number, offset) ->
            Check.expect("" + number, found.get(number % PARTITIONS).get(Math.toIntExact(offset))));
    }

    private void checkTransactions(List<String> found) {
        List<String> expected = new ArrayList<>();
        committed.stream().sorted().forEach(number -> {
            for (int i = 0; i < IN_A_TRANSACTION; i++) {
                expected.add(number + ":" + i);
            }
        });
        Check.expect(expected, found);
    }
}
