/* The few functions of librdkafka's stable binary interface that the load generator calls.
 * Declared here because the library comes with the confluent-kafka wheel, which carries no header. */
#ifndef OTTLA_LIBRDKAFKA_ABI_H
#define OTTLA_LIBRDKAFKA_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_error_s rd_kafka_error_t;

typedef struct rd_kafka_message_s {
    int err;
    rd_kafka_topic_t *rkt;
    int32_t partition;
    void *payload;
    size_t len;
    void *key;
    size_t key_len;
    int64_t offset;
    void *_private;
} rd_kafka_message_t;

enum { RD_KAFKA_PRODUCER = 0, RD_KAFKA_CONSUMER = 1 };
enum { RD_KAFKA_CONF_OK = 0 };
enum { RD_KAFKA_MSG_F_COPY = 0x2, RD_KAFKA_MSG_F_PARTITION = 0x8 };
enum { RD_KAFKA_OFFSET_BEGINNING = -2 };
enum { RD_KAFKA_RESP_ERR__QUEUE_FULL = -184, RD_KAFKA_RESP_ERR__PARTITION_EOF = -191 };

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *conf, const char *name, const char *value, char *error, size_t error_size);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *conf,
                                 void (*callback)(rd_kafka_t *, const rd_kafka_message_t *, void *));
rd_kafka_t *rd_kafka_new(int type, rd_kafka_conf_t *conf, char *error, size_t error_size);
void rd_kafka_destroy(rd_kafka_t *client);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *client, const char *topic, rd_kafka_topic_conf_t *conf);
void rd_kafka_topic_destroy(rd_kafka_topic_t *topic);
int rd_kafka_produce(rd_kafka_topic_t *topic, int32_t partition, int flags, void *payload, size_t length,
                     const void *key, size_t key_length, void *opaque);
int rd_kafka_produce_batch(rd_kafka_topic_t *topic, int32_t partition, int flags, rd_kafka_message_t *messages,
                           int count);
int rd_kafka_poll(rd_kafka_t *client, int timeout_ms);
int rd_kafka_flush(rd_kafka_t *client, int timeout_ms);
int rd_kafka_outq_len(rd_kafka_t *client);
rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *client, int timeout_ms);
rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *client);
rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *client, int timeout_ms);
const char *rd_kafka_error_string(const rd_kafka_error_t *error);
int rd_kafka_last_error(void);
const char *rd_kafka_err2str(int error);
const char *rd_kafka_version_str(void);
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *client);
void rd_kafka_queue_destroy(rd_kafka_queue_t *queue);
int rd_kafka_consume_start_queue(rd_kafka_topic_t *topic, int32_t partition, int64_t offset, rd_kafka_queue_t *queue);
int rd_kafka_consume_stop(rd_kafka_topic_t *topic, int32_t partition);
rd_kafka_message_t *rd_kafka_consume_queue(rd_kafka_queue_t *queue, int timeout_ms);
ssize_t rd_kafka_consume_batch_queue(rd_kafka_queue_t *queue, int timeout_ms, rd_kafka_message_t **messages,
                                     size_t count);
void rd_kafka_message_destroy(rd_kafka_message_t *message);

#endif
