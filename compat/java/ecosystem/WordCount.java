import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Counts words, exactly once: java WordCount BOOTSTRAP APPLICATION INPUT OUTPUT STATE-DIRECTORY.
 *
 * Nothing is cached, so each word of the input makes one record of the output, with the count so far: a word that was
 * lost or counted twice cannot hide. Runs until its input ends.
 */
public final class WordCount {
    private static final int TOLD_EVERY = 100;

    private WordCount() {
    }

    public static void main(String[] arguments) throws Exception {
        AtomicLong counted = new AtomicLong();
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[2], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts")
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .peek((word, count) -> tell(counted.incrementAndGet()))
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments));
        CountDownLatch failed = new CountDownLatch(1);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            failed.countDown();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        boolean closed = streams.close(Duration.ofSeconds(60));
        System.exit(closed && failed.getCount() == 1 ? 0 : 1);
    }

    private static void tell(long counted) {
        if (counted % TOLD_EVERY == 0) {
            System.out.println("counted " + counted);
        }
    }

    private static Properties settings(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("application.id", arguments[1]);
        settings.put("state.dir", arguments[4]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("num.stream.threads", "2");
        settings.put("statestore.cache.max.bytes", "0");
        settings.put("repartition.purge.interval.ms", "1000");
        settings.put("main.consumer.session.timeout.ms", "10000");
        settings.put("main.consumer.heartbeat.interval.ms", "1000");
        settings.put("main.consumer.auto.offset.reset", "earliest");
        settings.put("main.consumer.max.poll.records", "100");
        settings.put("producer.transaction.timeout.ms", "30000");
        return settings;
    }
}
