/* Workloads driven by librdkafka: what a real client sees. */
#include "librdkafka_abi.h"
#include "loadgen.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAYLOADS = 1024, CHUNK = 1000, TEXT_MAX = 512, LATENCY_WARM_UP = 1000 };

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque);

static rd_kafka_t *new_client(const arguments *args, int type, const char *const defaults[][2]) {
    char error[TEXT_MAX];
    const char *prefix = type == RD_KAFKA_PRODUCER ? "P." : "C.";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (; (*defaults)[0] != NULL; defaults++) {
        if (rd_kafka_conf_set(conf, (*defaults)[0], (*defaults)[1], error, sizeof error) != RD_KAFKA_CONF_OK) {
            fail("%s", error);
        }
    }
    if (rd_kafka_conf_set(conf, "bootstrap.servers", text_argument(args, "brokers", NULL), error, sizeof error) !=
        RD_KAFKA_CONF_OK) {
        fail("%s", error);
    }
    for (int i = 0; i < args->count; i++) {
        char name[TEXT_MAX];
        const char *equals = strchr(args->words[i], '=');
        if (strncmp(args->words[i], prefix, 2) != 0 || equals == NULL) {
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(equals - args->words[i] - 2), args->words[i] + 2);
        if (rd_kafka_conf_set(conf, name, equals + 1, error, sizeof error) != RD_KAFKA_CONF_OK) {
            fail("%s", error);
        }
    }
    if (type == RD_KAFKA_PRODUCER) {
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    }
    rd_kafka_t *client = rd_kafka_new(type, conf, error, sizeof error);
    if (client == NULL) {
        fail("%s", error);
    }
    return client;
}

static rd_kafka_topic_t *open_topic(rd_kafka_t *client, const arguments *args) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, text_argument(args, "topic", NULL), NULL);
    if (topic == NULL) {
        fail("cannot open the topic: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    return topic;
}

/* Payloads that compress about as well as log lines do: half fixed words, half random digits. */
static char *make_payloads(size_t size) {
    static const char words[] = "{\"level\":\"info\",\"service\":\"orders\",\"region\":\"north\",\"id\":\"";
    char *payloads = malloc(PAYLOADS * size);
    if (payloads == NULL) {
        fail("out of memory for payloads");
    }
    uint64_t random = 88172645463325252ULL;
    for (size_t i = 0; i < PAYLOADS * size; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t at = (i % size) % 100;
        payloads[i] = at < sizeof words - 1 && at < 50 ? words[at] : "0123456789abcdef"[(random >> 20) & 15];
    }
    return payloads;
}

/* Only failures are reported back per record: an empty queue after the flush means every record was acknowledged. */
static long long failures;

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    (void)opaque;
    if (message->err != 0 && failures++ == 0) {
        fprintf(stderr, "first failed delivery: %s\n", rd_kafka_err2str(message->err));
    }
}

static void enqueue(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition, rd_kafka_message_t *chunk, int count) {
    while (count > 0) {
        int taken = rd_kafka_produce_batch(topic, partition, 0, chunk, count);
        if (taken == count) {
            break;
        }
        /* A full queue takes some and marks the others: those are moved to the front and offered again. */
        int left = 0;
        for (int i = 0; i < count; i++) {
            if (chunk[i].err == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                chunk[left++] = chunk[i];
            } else if (chunk[i].err != 0) {
                fail("produce: %s", rd_kafka_err2str(chunk[i].err));
            }
        }
        count = left;
        rd_kafka_poll(client, 1);
    }
    rd_kafka_poll(client, 0);
}

/* One record to each partition first, so that connecting and looking up leaders is not part of the figure. */
static void open_path(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partitions, char *payloads, size_t size) {
    for (int32_t partition = 0; partition < partitions; partition++) {
        rd_kafka_message_t first = {.payload = payloads, .len = size};
        enqueue(client, topic, partition, &first, 1);
    }
    if (rd_kafka_flush(client, 60000) != 0) {
        fail("the first records were never acknowledged");
    }
}

static void must(rd_kafka_error_t *error, const char *what) {
    if (error != NULL) {
        fail("%s: %s", what, rd_kafka_error_string(error));
    }
}

/* With transaction=N, every N records are a transaction: begun, sent and committed before the next one begins. */
int run_produce(const arguments *args) {
    static const char *const defaults[][2] = {
        {"queue.buffering.max.messages", "500000"},
        {"delivery.report.only.error", "true"},
        {NULL, NULL},
    };
    long long records = number_argument(args, "records", 1000000);
    size_t size = (size_t)number_argument(args, "size", 100);
    int32_t partitions = (int32_t)number_argument(args, "partitions", 1);
    long long transaction = number_argument(args, "transaction", 0);
    long long transactions = 0;
    char *payloads = make_payloads(size);
    rd_kafka_t *client = new_client(args, RD_KAFKA_PRODUCER, defaults);
    rd_kafka_topic_t *topic = open_topic(client, args);
    rd_kafka_message_t chunk[CHUNK];
    if (transaction > 0) {
        must(rd_kafka_init_transactions(client, 60000), "init transactions");
        must(rd_kafka_begin_transaction(client), "begin");
    }
    open_path(client, topic, partitions, payloads, size);
    if (transaction > 0) {
        must(rd_kafka_commit_transaction(client, 60000), "commit");
    }

    int64_t start = now_ns();
    double cpu_start = cpu_seconds();
    for (long long sent = 0; sent < records;) {
        int count = records - sent < CHUNK ? (int)(records - sent) : CHUNK;
        if (transaction > 0) {
            long long left = transaction - sent % transaction;
            count = left < count ? (int)left : count;
            if (left == transaction) {
                must(rd_kafka_begin_transaction(client), "begin");
            }
        }
        memset(chunk, 0, (size_t)count * sizeof chunk[0]);
        for (int i = 0; i < count; i++) {
            chunk[i].payload = payloads + (size_t)((sent + i) % PAYLOADS) * size;
            chunk[i].len = size;
        }
        enqueue(client, topic, (int32_t)((sent / CHUNK) % partitions), chunk, count);
        sent += count;
        if (transaction > 0 && (sent % transaction == 0 || sent == records)) {
            must(rd_kafka_commit_transaction(client, 60000), "commit");
            transactions++;
        }
    }
    if (rd_kafka_flush(client, 120000) != 0 || rd_kafka_outq_len(client) != 0 || failures != 0) {
        fail("%lld records failed, %d were never acknowledged", failures, rd_kafka_outq_len(client));
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{");
    print_throughput(records, records * (long long)size, seconds, cpu_seconds() - cpu_start);
    printf(", \"transactions_per_second\": %.1f, \"librdkafka\": \"%s\"}\n", (double)transactions / seconds,
           rd_kafka_version_str());
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    free(payloads);
    return 0;
}

int run_consume(const arguments *args) {
    static const char *const defaults[][2] = {
        {"queued.min.messages", "1000000"},
        {NULL, NULL},
    };
    long long records = number_argument(args, "records", 1000000);
    int32_t partitions = (int32_t)number_argument(args, "partitions", 1);
    int64_t deadline = now_ns() + number_argument(args, "timeout_s", 120) * 1000000000;
    rd_kafka_t *client = new_client(args, RD_KAFKA_CONSUMER, defaults);
    rd_kafka_topic_t *topic = open_topic(client, args);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_message_t *batch[CHUNK];

    int64_t begin = now_ns();
    for (int32_t partition = 0; partition < partitions; partition++) {
        if (rd_kafka_consume_start_queue(topic, partition, RD_KAFKA_OFFSET_BEGINNING, queue) != 0) {
            fail("cannot consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
        }
    }
    long long received = 0;
    long long bytes = 0;
    /* The clock starts with the first chunk: what comes before it is the client's own back-off, not the broker. */
    int64_t start = 0;
    double cpu_start = 0;
    long long skipped = 0;
    while (received < records) {
        ssize_t count = rd_kafka_consume_batch_queue(queue, 1000, batch, CHUNK);
        for (ssize_t i = 0; i < count; i++) {
            if (batch[i]->err == 0) {
                received++;
                bytes += (long long)batch[i]->len;
            } else if (batch[i]->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                fprintf(stderr, "consume: %s\n", rd_kafka_err2str(batch[i]->err));
            }
            rd_kafka_message_destroy(batch[i]);
        }
        if (start == 0 && received > 0) {
            start = now_ns();
            cpu_start = cpu_seconds();
            skipped = received;
            bytes = 0;
        }
        if (now_ns() > deadline) {
            fail("only %lld of %lld records arrived in time", received, records);
        }
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{");
    print_throughput(received - skipped, bytes, seconds, cpu_seconds() - cpu_start);
    printf(", \"first_record_ms\": %.3f}\n", (double)(start - begin) / 1e6);
    for (int32_t partition = 0; partition < partitions; partition++) {
        rd_kafka_consume_stop(topic, partition);
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return 0;
}

typedef struct {
    const arguments *args;
    long long records;
    long long received;
    int ready;
    samples latencies;
} receiver;

/* Reads the stamped records back. The first ones only warm the path up and tell the sender that it is open. */
static void *receive(void *context) {
    static const char *const defaults[][2] = {{NULL, NULL}};
    receiver *self = context;
    rd_kafka_t *client = new_client(self->args, RD_KAFKA_CONSUMER, defaults);
    rd_kafka_topic_t *topic = open_topic(client, self->args);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    if (rd_kafka_consume_start_queue(topic, 0, RD_KAFKA_OFFSET_BEGINNING, queue) != 0) {
        fail("cannot consume: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    while (self->received < self->records) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(queue, 100);
        int64_t now = now_ns();
        int64_t stamp;
        if (message == NULL) {
            continue;
        }
        if (message->err == 0 && message->len >= sizeof stamp) {
            memcpy(&stamp, message->payload, sizeof stamp);
            if (stamp != 0 && self->received++ >= LATENCY_WARM_UP) {
                add_sample(&self->latencies, now - stamp);
            }
            __atomic_store_n(&self->ready, 1, __ATOMIC_RELEASE);
        }
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consume_stop(topic, 0);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return NULL;
}

static void send_stamped(rd_kafka_t *client, rd_kafka_topic_t *topic, char *payload, size_t size, int64_t stamp) {
    memcpy(payload, &stamp, sizeof stamp);
    while (rd_kafka_produce(topic, 0, RD_KAFKA_MSG_F_COPY, payload, size, NULL, 0, NULL) != 0) {
        rd_kafka_poll(client, 1);
    }
    rd_kafka_poll(client, 0);
}

int run_latency(const arguments *args) {
    static const char *const defaults[][2] = {{"linger.ms", "0"}, {"delivery.report.only.error", "true"}, {NULL, NULL}};
    long long rate = number_argument(args, "rate", 1000);
    size_t size = (size_t)number_argument(args, "size", 1000);
    long long records = rate * number_argument(args, "seconds", 10) + LATENCY_WARM_UP;
    receiver reader = {.args = args, .records = records};
    char *payload = calloc(1, size < sizeof(int64_t) ? sizeof(int64_t) : size);
    rd_kafka_t *client = new_client(args, RD_KAFKA_PRODUCER, defaults);
    rd_kafka_topic_t *topic = open_topic(client, args);
    pthread_t thread;
    if (payload == NULL || pthread_create(&thread, NULL, receive, &reader) != 0) {
        fail("cannot start the receiving thread");
    }
    send_stamped(client, topic, payload, size, 0);
    while (!__atomic_load_n(&reader.ready, __ATOMIC_ACQUIRE)) {
        rd_kafka_poll(client, 5);
    }
    /* A late sender does not hide waiting: the stamp is the time at which the record was due. */
    int64_t start = now_ns();
    double cpu_start = cpu_seconds();
    for (long long i = 0; i < records; i++) {
        int64_t due = start + i * 1000000000 / rate;
        struct timespec until = {due / 1000000000, due % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        send_stamped(client, topic, payload, size, due);
    }
    if (rd_kafka_flush(client, 30000) != 0) {
        fail("records were never acknowledged");
    }
    pthread_join(thread, NULL);
    double seconds = (double)(now_ns() - start) / 1e9;
    printf("{");
    print_throughput(records, records * (long long)size, seconds, cpu_seconds() - cpu_start);
    print_percentiles(&reader.latencies);
    printf("}\n");
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    free(payload);
    free(reader.latencies.values);
    return 0;
}
