import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Uuid;

/** Clients that push their own metrics when somebody subscribes to them (KIP-714), for as long as they are read from. */
final class TelemetryCheck {
    private TelemetryCheck() {
    }

    /** A producer and a consumer that work until somebody closes this program's input; their ids are printed. */
    static void push(String bootstrap, String[] arguments) throws Exception {
        String topic = RecordsCheck.newTopic(bootstrap, 1);
        String[] ofConsumer = {"client.id", "java-consumer", "group.id", topic, "auto.offset.reset", "earliest"};
        try (KafkaProducer<byte[], byte[]> producer = RecordsCheck.producer(bootstrap, "client.id", "java-producer");
                KafkaConsumer<byte[], byte[]> consumer = RecordsCheck.consumer(bootstrap, ofConsumer)) {
            consumer.subscribe(List.of(topic));
            Uuid id = producer.clientInstanceId(Duration.ofMillis(Check.WAIT_MS));
            System.out.println("instance " + id);
            while (System.in.available() == 0) {
                producer.send(new ProducerRecord<>(topic, RecordsCheck.bytes("pushed"))).get();
                consumer.poll(Duration.ofMillis(50));
            }
        }
    }
}
