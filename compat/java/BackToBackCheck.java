import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TransactionAbortableException;

/**
 * Transactions of version 2 without a pause: each begins as soon as the commit before it returns, with several batches in
 * flight to every broker. Arguments: topic, transactions in all, producers, "calm" or "killed" (brokers may be killed
 * meanwhile). Says how many transactions have ended as it goes, and at the end compares the topic with what was promised.
 */
final class BackToBackCheck {
    private static final Duration POLL = Duration.ofMillis(200);
    private static final int TOLD_EVERY = 50;
    private static final int RECORDS_MAX = 15;
    private static final int ABORTED_EVERY = 7;
    private static final int COORDINATORS = 3;

    private final String bootstrap;
    private final String topic;
    private final int each;
    private final int producers;
    private final boolean calm;
    private final int partitions;
    private final BitSet[] committed;
    private final AtomicInteger ended = new AtomicInteger();
    private final AtomicInteger refused = new AtomicInteger();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();

    private BackToBackCheck(String bootstrap, String[] arguments) {
        this.bootstrap = bootstrap;
        topic = arguments[0];
        producers = Integer.parseInt(arguments[2]);
        each = Integer.parseInt(arguments[1]) / producers;
        calm = arguments[3].equals("calm");
        committed = new BitSet[producers];
        try (KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap)) {
            partitions = consumer.partitionsFor(topic).size();
        }
    }

    static void run(String bootstrap, String[] arguments) throws Exception {
        expectVersionTwo(bootstrap);
        new BackToBackCheck(bootstrap, arguments).whole();
    }

    /** Without it the client would speak the older way, with a request before the first write to each partition. */
    private static void expectVersionTwo(String bootstrap) throws Exception {
        try (Admin admin = Admin.create(Check.settings(bootstrap))) {
            FeatureMetadata features = admin.describeFeatures().featureMetadata().get();
            Check.expect((short) 2, features.finalizedFeatures().get("transaction.version").maxVersionLevel());
        }
    }

    private void whole() throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int p = 0; p < producers; p++) {
            int number = p;
            committed[p] = new BitSet(each);
            threads.add(new Thread(() -> guarded(number)));
        }
        long start = System.nanoTime();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (failure.get() != null) {
            throw new AssertionError("a producer failed after " + ended.get() + " transactions", failure.get());
        }
        long seconds = Math.max(1, (System.nanoTime() - start) / 1_000_000_000);
        int records = compare();
        System.out.println(ended.get() + " transactions in " + seconds + " s, " + records + " records committed, "
            + refused.get() + " transactions refused by a broker and aborted");
    }

    private void guarded(int producer) {
        try {
            transact(producer);
        } catch (Throwable error) {
            failure.compareAndSet(null, error);
        }
    }

    /** The transaction's own number decides how many records it has and where they go. */
    private static int records(int number) {
        return 1 + number % RECORDS_MAX;
    }

    private int partition(int producer, int number, int record) {
        return (producer + number + record) % partitions;
    }

    private static boolean wantsAbort(int number) {
        return number % ABORTED_EVERY == ABORTED_EVERY - 1;
    }

    /** An id whose coordinator is not that of the producers before it, where the state topic has three partitions. */
    private static String id(int producer) {
        while (true) {
            String id = Check.unique("back-to-back");
            if ((id.hashCode() & Integer.MAX_VALUE) % COORDINATORS == producer % COORDINATORS) {
                return id;
            }
        }
    }

    private void transact(int producer) {
        String[] settings = {"transactional.id", id(producer), "max.in.flight.requests.per.connection", "5",
            "batch.size", "64", "linger.ms", "0", "acks", "all", "delivery.timeout.ms", "300000",
            "request.timeout.ms", "20000", "max.block.ms", "120000", "transaction.timeout.ms", "300000"};
        try (KafkaProducer<byte[], byte[]> client = RecordsCheck.producer(bootstrap, settings)) {
            again(client::initTransactions);
            for (int number = 0; number < each && failure.get() == null; number++) {
                if (one(client, producer, number)) {
                    committed[producer].set(number);
                }
                int all = ended.incrementAndGet();
                if (all % TOLD_EVERY == 0) {
                    System.out.println("ended " + all);
                }
            }
        }
    }

    /** Whether it was committed. Where brokers are killed, one that a broker refuses is aborted as the client asks for. */
    private boolean one(KafkaProducer<byte[], byte[]> client, int producer, int number) {
        try {
            client.beginTransaction();
            for (int i = 0; i < records(number); i++) {
                byte[] value = RecordsCheck.bytes(producer + ":" + number + ":" + i);
                client.send(new ProducerRecord<>(topic, partition(producer, number, i), null, value));
            }
            if (!wantsAbort(number)) {
                // The client looks whether batches are left and then for the next request. On a busy machine all of a
                // transaction can come in between: it would end it before it has sent anything of it, which no broker
                // can make good. What it has sent it waits for in any case.
                client.flush();
                again(client::commitTransaction);
                return true;
            }
        } catch (KafkaException error) {
            if (calm || !abortable(error)) {
                throw error;
            }
            refused.incrementAndGet();
        }
        again(client::abortTransaction);
        return false;
    }

    private static boolean abortable(Throwable error) {
        return error != null && (error instanceof TransactionAbortableException || abortable(error.getCause()));
    }

    /** A call that could not be completed in time is made again, which the client allows for these. */
    private void again(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (ProducerFencedException error) {
                throw error;
            } catch (TimeoutException error) {
                if (calm || failure.get() != null) {
                    throw error;
                }
            }
        }
    }

    /** Every committed record once and in the order of its producer, in each partition, and nothing else. */
    private int compare() {
        Map<Integer, List<String>> found = readCommitted();
        int records = 0;
        for (int partition = 0; partition < partitions; partition++) {
            Map<Integer, List<String>> byProducer = new HashMap<>();
            for (String value : found.get(partition)) {
                int producer = Integer.parseInt(value.substring(0, value.indexOf(':')));
                byProducer.computeIfAbsent(producer, p -> new ArrayList<>()).add(value);
            }
            for (int producer = 0; producer < producers; producer++) {
                compare(partition, producer, byProducer.getOrDefault(producer, List.of()));
            }
            records += found.get(partition).size();
        }
        return records;
    }

    private void compare(int partition, int producer, List<String> found) {
        int at = 0;
        for (int number = committed[producer].nextSetBit(0); number >= 0; number = committed[producer].nextSetBit(number + 1)) {
            for (int i = 0; i < records(number); i++) {
                if (partition(producer, number, i) == partition) {
                    String expected = producer + ":" + number + ":" + i;
                    String seen = at < found.size() ? found.get(at) : "the end";
                    Check.expect(expected.equals(seen), "in partition " + partition + " stands " + seen + " instead of "
                        + expected + " as record " + at + " of its producer");
                    at++;
                }
            }
        }
        Check.expect(found.size() == at, "partition " + partition + " has records after the last committed one: "
            + found.subList(at, Math.min(at + 5, found.size())));
    }

    private Map<Integer, List<String>> readCommitted() {
        Map<Integer, List<String>> values = new HashMap<>();
        List<TopicPartition> all = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            all.add(new TopicPartition(topic, partition));
            values.put(partition, new ArrayList<>());
        }
        try (KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, "isolation.level", "read_committed");
                KafkaConsumer<byte[], byte[]> dirty = RecordsCheck.consumer(bootstrap)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            // A commit returns before all its markers are written; when they are, the last stable offset is the end.
            Map<TopicPartition, Long> ends = dirty.endOffsets(all);
            Check.waitUntil("the last stable offset is the end", () -> consumer.endOffsets(all).entrySet().stream()
                .allMatch(end -> end.getValue() >= ends.get(end.getKey())));
            Check.waitUntil("the end of " + topic, () -> {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    values.get(record.partition()).add(new String(record.value(), StandardCharsets.UTF_8));
                }
                return ends.entrySet().stream().allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
            });
        }
        return values;
    }
}
